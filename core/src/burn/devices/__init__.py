"""Devices: handles of hardware, their settings, their layers, and which one is the default."""

from burn.devices._generator import hand_down_generator
from burn.devices._router import ROUTER
from burn.devices._tensor_type import TensorType, forget_plans, plans_hidden_from_traces
from burn.devices._transforms import (
    AUTODIFF,
    GRAD,
    VMAP,
    Trace,
    Transform,
    before_compilation,
    count_traces,
    each_layer,
    outside_of_traces,
    running,
    running_trace,
    trace_counts,
    tracing,
    transforms,
    under,
    under_running,
    watches,
)
from burn.devices.device import Device
from burn.devices.settings import DeviceSettings
from burn.plugins import registry

__all__ = [
    "AUTODIFF",
    "GRAD",
    "VMAP",
    "Device",
    "DeviceSettings",
    "TensorType",
    "Trace",
    "Transform",
    "before_compilation",
    "count_traces",
    "each_layer",
    "forget_plans",
    "hand_down_generator",
    "outside_of_traces",
    "plans_hidden_from_traces",
    "running",
    "running_trace",
    "trace_counts",
    "tracing",
    "transforms",
    "under",
    "under_running",
    "watches",
]

registry.build_in(ROUTER)
