"""The class Tensor: attributes, operators, indexing, conversion to the host, gradients."""
