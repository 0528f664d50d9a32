"""burn-cuda: NVIDIA GPUs through CuPy, as a backend of burn."""

__version__ = "0.1.0"
