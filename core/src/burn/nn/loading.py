"""Loading of values that are read one after the other, from files, into a module."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from burn.devices import Device
from burn.dtype import float32
from burn.nn._slots import slots_of
from burn.nn._state_dict import LoadReport, compared, converted
from burn.ops.shapes import check_conversion
from burn.quant_scheme import QDType
from burn.tensor.tensor import Tensor

if TYPE_CHECKING:
    from burn.aliases import Shape
    from burn.dtype import DType
    from burn.nn.module import Module

__all__ = ["LoadReport", "load_each"]


def load_each(
    module: Module,
    values: Mapping[str, tuple[Shape, DType]],
    read: Callable[[str, Device, DType], Tensor],
    *,
    only: Callable[[str], bool],
    strict: bool,
    operation: str,
) -> LoadReport:
    """Read a value for each parameter and buffer of a module, and assign it before the next.

    Parameters
    ----------
    module : Module
        What gets the values.
    values : mapping of str to (tuple of int, DType)
        Shape and dtype of each value by its path: what does not fit is known before one is read.
    read : callable
        ``read(path, device, dtype)`` returns a value on a device without autodiff. If the device
        lacks the dtype of the value, it has the dtype of the parameter.
    only : callable
        ``only(path)`` says whether a path of the module is to be loaded.
    strict : bool
        As of `Module.load_state_dict`.
    operation : str
        What errors name.

    Returns
    -------
    LoadReport
        What was missing, unexpected or of another shape.

    Raises
    ------
    ArgumentError
        If `strict` and the report is not empty; the module is unchanged then.
    DTypeError
        If values are complex and the tensor is not, or fractions and the tensor holds integers; the
        module is unchanged then.
    """
    tensors = {
        slot.path: slot.tensor
        for slot in slots_of(module)
        if not slot.is_transient and only(slot.path)
    }
    shapes = {path: shape for path, (shape, _) in values.items()}
    report = compared(tensors, shapes, strict=strict, operation=operation)
    fitting = {path: x for path, x in tensors.items() if path in values}
    for path in report.mismatched:
        del fitting[path]
    for path, tensor in fitting.items():
        target = float32 if isinstance(tensor.dtype, QDType) else tensor.dtype
        check_conversion(values[path][1], target)

    def value_of(path: str) -> Tensor:
        tensor = tensors[path]
        value = read(path, tensor.device.hardware, tensor.dtype)
        return converted(value, tensor, path, operation)

    may_fail = [p for p, x in fitting.items() if values[p][1].is_float and not x.dtype.is_float]
    checked = {path: value_of(path) for path in may_fail}
    for path, tensor in fitting.items():
        tensor.assign(checked[path] if path in checked else value_of(path))
    return report
