"""burn-nvidia: the GPUs of NVIDIA that a process may use, for the probes of plugins."""

from burn_nvidia.gpus import Gpu, NoDriverError, find_gpus, visible_gpus

__all__ = ["Gpu", "NoDriverError", "find_gpus", "visible_gpus"]

__version__ = "0.1.0"
