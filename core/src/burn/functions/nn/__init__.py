"""The public functions of neural networks: what `burn.nn.functional` gives."""
