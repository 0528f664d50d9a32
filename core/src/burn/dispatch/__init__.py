"""Dispatch: the one backend that user code sees; it picks the real one by a tensor's device.

Two paths lead through here. `unary` and `binary` make the functions behind operators: where the
operands agree they go straight to the device's op table. `Dispatch.execute` is the path for
everything else: it finds the device, promotes, converts numbers, and explains what went wrong.
"""

from burn.dispatch._operands import (
    DispatchTensor,
    as_python,
    common_device,
    dtype_with_number,
    join_trace,
    meta_of,
    prevailing_strategy,
    to_scalar,
)
from burn.dispatch.calls import call_of, call_on_lists
from burn.dispatch.dispatch import Dispatch
from burn.dispatch.gradients import Gradients
from burn.dispatch.resolution import before_widening

__all__ = [
    "Dispatch",
    "DispatchTensor",
    "Gradients",
    "as_python",
    "before_widening",
    "call_of",
    "call_on_lists",
    "common_device",
    "dtype_with_number",
    "join_trace",
    "meta_of",
    "prevailing_strategy",
    "to_scalar",
]
