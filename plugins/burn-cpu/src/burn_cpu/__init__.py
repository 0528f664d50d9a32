"""burn-cpu: the CPU through NumPy, as a backend of burn."""

__version__ = "0.1.0"
