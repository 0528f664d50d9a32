"""Loading of the values of parameters and buffers by their paths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from burn.dtype import float32
from burn.errors import ArgumentError, DTypeError, OperandTypeError
from burn.functions.creation import asarray
from burn.functions.utility import all as all_of
from burn.quant_scheme import QDType
from burn.tensor.tensor import Tensor

if TYPE_CHECKING:
    from burn.aliases import Shape

__all__ = ["LoadReport", "compared", "converted", "load"]

_OPERATION = "Module.load_state_dict"

_SHOWN = 10
"""Number of paths of each sort that an error lists."""


@dataclass(frozen=True)
class LoadReport:
    """What did not fit when a state was loaded.

    Attributes
    ----------
    missing : list of str
        Paths of the module that the state does not have.
    unexpected : list of str
        Paths of the state that the module does not have.
    mismatched : dict of str to (tuple of int, tuple of int)
        Paths whose shapes differ: the module's and the state's.
    """

    missing: list[str] = field(default_factory=list)
    unexpected: list[str] = field(default_factory=list)
    mismatched: dict[str, tuple[Shape, Shape]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Whether something did not fit."""
        return bool(self.missing or self.unexpected or self.mismatched)

    def describe(self) -> str:
        """The report in words."""
        shapes = [
            f"{path} has shape {given} in the state and {own} in the module"
            for path, (own, given) in self.mismatched.items()
        ]
        parts = [
            f"{name}: {_some(paths)}"
            for name, paths in (
                ("missing", self.missing),
                ("unexpected", self.unexpected),
                ("of another shape", shapes),
            )
            if paths
        ]
        return "; ".join(parts) or "all fits"


def load(tensors: dict[str, Tensor], state: Any, *, strict: bool) -> LoadReport:
    """Assign the values of a state to tensors, if they fit.

    Raises
    ------
    ArgumentError
        If `strict` and something does not fit.
    """
    if not isinstance(state, Mapping):
        raise OperandTypeError(
            f"takes a mapping of paths to tensors, not {type(state).__name__}",
            hint="Pass what state_dict() returned",
            operation=_OPERATION,
        )
    given = {path: state[path] for path in tensors if path in state}
    shapes = {path: tuple(getattr(given.get(path), "shape", ())) for path in state}
    report = compared(tensors, shapes, strict=strict, operation=_OPERATION)
    values = {
        path: converted(value, tensors[path], path, _OPERATION)
        for path, value in given.items()
        if path not in report.mismatched
    }
    for path, value in values.items():
        tensors[path].assign(value)
    return report


def compared(
    tensors: Mapping[str, Tensor], shapes: Mapping[str, Shape], *, strict: bool, operation: str
) -> LoadReport:
    """What of a state does not fit tensors; a tensor at several paths may be there under one.

    Raises
    ------
    ArgumentError
        If `strict` and something does not fit.
    """
    found = {id(tensor) for path, tensor in tensors.items() if path in shapes}
    report = LoadReport(
        [path for path, x in tensors.items() if path not in shapes and id(x) not in found],
        [path for path in shapes if path not in tensors],
        {
            path: (x.shape, shapes[path])
            for path, x in tensors.items()
            if path in shapes and shapes[path] != x.shape
        },
    )
    if strict and report:
        raise ArgumentError(
            f"the state does not fit the module: {report.describe()}",
            hint="Rename the paths of the state; strict=False loads what fits, and returns the "
            "rest in a report",
            operation=operation,
        )
    return report


def converted(value: Any, tensor: Tensor, path: str, operation: str) -> Tensor:
    """A value with the dtype of a tensor, on its hardware; no fraction for an integer."""
    device = tensor.device.hardware
    if isinstance(value, Tensor):
        found = value.detach().inner().to_device(device)
    else:
        try:
            found = asarray(value, device=device)
        except TypeError as error:
            raise OperandTypeError(
                f"{path} is an object of type {type(value).__name__}, no tensor or array: {error}",
                operation=operation,
            ) from error
    if isinstance(tensor.dtype, QDType):
        if not found.dtype.is_float:
            found = found.astype(float32)
        return found.astype(tensor.dtype)
    if isinstance(found.dtype, QDType):
        found = found.dequantize()
    result = found.astype(tensor.dtype)
    is_rounded = found.dtype.is_float and not tensor.dtype.is_float
    if is_rounded and not all_of(result.astype(found.dtype) == found):
        raise DTypeError(
            f"{path} has dtype {tensor.dtype}, and the state fractions",
            hint="Convert it with .astype() if that is meant",
            operation=operation,
        )
    return result


def _some(paths: list[str]) -> str:
    more = f", ... {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    return ", ".join(paths[:_SHOWN]) + more
