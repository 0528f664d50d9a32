"""burn-opencl: GPUs and CPUs that speak OpenCL, as a backend of burn."""

__version__ = "0.1.0"
