"""Every exception that burn raises, with one base class.

A message names the operation and its operands, the rule that was broken, and what to do. Each
class is also the built-in exception that a user of NumPy or PyTorch would catch.
"""

from __future__ import annotations

from burn.public_calls import public_operation

__all__ = [
    "ArgumentError",
    "AutodiffError",
    "AxisError",
    "BurnError",
    "DTypeError",
    "DeviceMismatchError",
    "DeviceUnavailableError",
    "ExecutionError",
    "ExportError",
    "GraphError",
    "MissingAttributeError",
    "MissingGradientError",
    "OperandTypeError",
    "OutOfMemoryError",
    "OutOfRangeError",
    "PluginError",
    "ScalarRangeError",
    "ShapeError",
    "StoreError",
    "TraceError",
    "UnsupportedOpError",
    "WorkerError",
]


def __dir__() -> list[str]:
    return __all__


class BurnError(Exception):
    """Base class of all burn errors.

    Parameters
    ----------
    rule : str
        The rule that was broken, and the values that broke it.
    hint : str
        What to do.
    operation : str
        The operation and its operands, such as ``add(float32[2, 3], float32[4])``; the function
        that the user called replaces it, if that has another name. `Op.infer` adds it to the
        errors of its own checks.
    """

    def __init__(self, rule: str, *, hint: str = "", operation: str = "") -> None:
        self.rule = rule
        self.hint = hint
        self.operation = public_operation(operation) if operation else operation
        super().__init__(rule)

    def __str__(self) -> str:
        head = f"{self.operation}: " if self.operation else ""
        tail = f". {self.hint}" if self.hint else ""
        return f"{head}{self.rule}{tail}"

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.rule, self.hint, self.operation)


def _rebuild(kind: type[BurnError], rule: str, hint: str, operation: str) -> BurnError:
    error = kind(rule, hint=hint)
    error.operation = operation
    return error


class ArgumentError(BurnError, ValueError):
    """An argument has a value that the operation does not accept."""


class OperandTypeError(BurnError, TypeError):
    """An operand or argument has a type that the operation does not accept."""


class ShapeError(BurnError, ValueError):
    """Shapes do not fit the operation or each other."""


class AxisError(ShapeError, IndexError):
    """An axis or a static index is out of range for the shape it refers to."""


class MissingAttributeError(ShapeError, AttributeError):
    """An attribute that tensors of this shape do not have, so that ``hasattr`` is false."""


class DTypeError(BurnError, TypeError):
    """A dtype does not fit the operation, or the device does not support it."""


class ScalarRangeError(BurnError, OverflowError):
    """A Python number is out of range for the dtype of the tensor that it is combined with."""


class DeviceMismatchError(BurnError, ValueError):
    """Tensors on different hardware meet in one operation."""


class DeviceUnavailableError(BurnError, RuntimeError):
    """A device is unknown, not installed or not present."""


class UnsupportedOpError(BurnError, NotImplementedError):
    """A backend has no way to run an operation."""


class TraceError(UnsupportedOpError):
    """A function that is traced needs what only a run knows, such as the value of a tensor."""


class PluginError(BurnError, RuntimeError):
    """A plugin is broken: it fails at import or load, or breaks the plugin contract."""


class ExportError(BurnError, BufferError):
    """Memory cannot be shared as asked: not with that dtype, that device, or without a copy."""


class GraphError(BurnError, ValueError):
    """A program, or its text or bytes, breaks a rule of the intermediate representation."""


class StoreError(BurnError, OSError):
    """A file or a checkpoint cannot be written or read: a full disk, a damaged or hostile file."""


class WorkerError(BurnError, RuntimeError):
    """A process or thread that loads data ended, or cannot start."""


class AutodiffError(BurnError, RuntimeError):
    """There is no gradient: no graph, a graph that was freed, or a tensor that is no leaf."""


class MissingGradientError(AutodiffError, KeyError):
    """Gradients were asked for that of a tensor which is not among them."""


class ExecutionError(BurnError, RuntimeError):
    """Work failed while it ran on a device."""


class OutOfMemoryError(ExecutionError, MemoryError):
    """A device has no memory for a result or for an intermediate one."""


class OutOfRangeError(ExecutionError, IndexError):
    """An index that a tensor holds is out of range, which the device found while it ran."""
