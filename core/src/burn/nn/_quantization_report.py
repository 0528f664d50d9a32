"""Reports of the quantization of models: the error of each layer, and bytes before and after."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from burn.nn._slots import slots_of
from burn.quant_scheme import QDType

if TYPE_CHECKING:
    from burn.aliases import Shape
    from burn.nn.module import Module
    from burn.quant_scheme import QuantScheme
    from burn.tensor.tensor import Tensor

__all__ = ["LayerReport", "QuantizationReport", "bytes_in", "bytes_of"]


class LayerReport(NamedTuple):
    """What quantization did to the weight of a layer.

    Attributes
    ----------
    path : str
        Of the layer; empty for the model itself.
    layer : str
        As ``repr`` shows it.
    shape : tuple of int
        Of the weight.
    scheme : QuantScheme or None
        Of the weight; None if it was left as it is.
    relative_error : float
        Frobenius norm of the difference that quantization made, by that of the weight.
    largest_error : float
        Largest magnitude of the difference.
    bytes_before, bytes_after : int
        Size of the weight.
    note : str
        Why the weight was left as it is; empty if it was not.
    """

    path: str
    layer: str
    shape: Shape
    scheme: QuantScheme | None
    relative_error: float
    largest_error: float
    bytes_before: int
    bytes_after: int
    note: str = ""


@dataclass(frozen=True)
class QuantizationReport:
    """What quantization did to a model; it prints as a table.

    Attributes
    ----------
    rows : list of LayerReport
        The selected layers in the order of the model, each weight once.
    bytes_before, bytes_after : int
        Size of all parameters and buffers of the model, each tensor once.
    """

    rows: list[LayerReport]
    bytes_before: int
    bytes_after: int

    def __str__(self) -> str:
        table: list[tuple[str, ...]] = [
            ("layer", "scheme", "relative error", "largest error", "bytes before", "after")
        ]
        for row in self.rows:
            errors = ("", "")
            if row.scheme is not None:
                errors = (f"{100 * row.relative_error:.2f} %", f"{row.largest_error:.3g}")
            table.append(
                (
                    f"{row.path}: {row.layer}" if row.path else row.layer,
                    row.note or str(row.scheme),
                    *errors,
                    f"{row.bytes_before:,}",
                    f"{row.bytes_after:,}",
                )
            )
        total = (f"{self.bytes_before:,}", f"{self.bytes_after:,}")
        table.append(("all tensors", "", "", "", *total))
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        return "\n".join(
            "  ".join([*map(str.ljust, row[:2], widths[:2]), *map(str.rjust, row[2:], widths[2:])])
            for row in table
        )

    __repr__ = __str__


def bytes_of(x: Tensor) -> int:
    """Size of the elements of a tensor; of a quantized one that of its codes and scales."""
    return (
        x.dtype.scheme.nbytes(x.shape) if isinstance(x.dtype, QDType) else x.size * x.dtype.itemsize
    )


def bytes_in(model: Module) -> int:
    """Size of all tensors of a model, each once."""
    return sum(
        bytes_of(x) for x in {id(slot.tensor): slot.tensor for slot in slots_of(model)}.values()
    )
