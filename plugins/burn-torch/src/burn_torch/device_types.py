"""The device types of torch, by their numbers in `DeviceId.type_id`."""

__all__ = ["DEVICE_TYPES"]

DEVICE_TYPES = ("cuda", "mps", "cpu", "vulkan", "xpu")
"""In the order of burn's LibTorch backend; xpu, which that has not, comes last."""
