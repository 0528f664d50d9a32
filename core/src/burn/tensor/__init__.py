"""The class Tensor: attributes, operators, indexing, conversion to the host, gradients."""

from burn.public_calls import has_methods

has_methods(
    __name__,
    shown={
        "__array__": "numpy",
        "__bool__": "bool",
        "__complex__": "complex",
        "__contains__": "in",
        "__float__": "float",
        "__format__": "format",
        "__index__": "int",
        "__int__": "int",
        "getitem": "indexing",
        "setitem": "indexing",
    },
)
