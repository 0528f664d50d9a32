"""burn-torch: PyTorch as a backend of burn, on the CPU and on the accelerators that it knows."""

__version__ = "0.1.0"
