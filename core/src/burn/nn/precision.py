"""Mixed precision: modules that compute in another dtype than that of their parameters."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from burn.errors import DTypeError
from burn.functions.normalize import as_dtype
from burn.nn._preparation import call_forward
from burn.nn._slots import STATE, slots_of
from burn.nn._structure import copy_with
from burn.tensor.tensor import Tensor
from burn.tree import map as map_leaves

if TYPE_CHECKING:
    from burn.dtype import DType
    from burn.functions.common import DTypeLike
    from burn.nn.module import Module

__all__ = ["Precision"]


class Precision:
    """The dtypes of a module's parameters, of what it computes with, and of what it returns.

    `Module.set_precision` gives it to a module and all below it. In each call parameters and
    float inputs are converted to the dtype `compute`, and float outputs to the dtype `output`.
    Gradients come back to the parameters in their own dtype, which optimizers update. Buffers, such
    as running statistics, keep theirs.

    Parameters
    ----------
    compute : DType or str
        Of computations: float16 or bfloat16, which are fast on many devices.
    parameters : DType or str, optional
        Of parameters and float buffers. None: as they are.
    output : DType or str, optional
        Of float outputs. None: as they come.

    Raises
    ------
    DTypeError
        If one is no float dtype.

    Notes
    -----
    Micikevicius et al., 2018, arXiv:1710.03740. Gradients of float16 underflow: scale the loss with
    `burn.optim.LossScaler`. bfloat16 has the range of float32 and needs no scaling. A module below
    may have a precision of its own, such as float32 for the last layer.

    Examples
    --------
    >>> import burn
    >>> from burn import nn
    >>> net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
    >>> net.set_precision(nn.Precision(compute="bfloat16"))[0].weight.dtype
    burn.float32
    >>> net[0].set_precision(nn.Precision(compute="bfloat16", output=None))(burn.ones(4)).dtype
    burn.bfloat16
    """

    def __init__(
        self,
        compute: DTypeLike,
        *,
        parameters: DTypeLike | None = "float32",
        output: DTypeLike | None = "float32",
    ) -> None:
        self.compute = _float(compute, "compute")
        self.parameters = None if parameters is None else _float(parameters, "parameters")
        self.output = None if output is None else _float(output, "output")

    def __repr__(self) -> str:
        parts = [
            f"{name}={None if item is None else item.name!r}" for name, item in vars(self).items()
        ]
        return f"Precision({', '.join(parts)})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Precision) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash(tuple(vars(self).values()))

    def call(self, module: Module, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """What the method ``forward`` of a module returns in this precision.

        Parameters
        ----------
        module : Module
            Calls this where it was given to `Module.set_precision`.
        args, keywords : tuple and dict
            Of the call.
        """
        others = _with_own_precision(module)
        apart = {id(inner) for other in others for inner in other.modules()}
        copies: dict[int, Any] = {id(other): other for other in others}
        tensors = {
            id(slot.tensor): slot.tensor
            for slot in slots_of(module)
            if slot.is_parameter and id(slot.owner) not in apart
        }
        values = {key: _as(tensor, self.compute) for key, tensor in tensors.items()}
        copy = copy_with(module, values, copies, is_cast=True)
        found = [(module, copies.get(id(module), module)) for module in module.modules()]
        copied = [(original, item) for original, item in found if original is not item]
        for _, item in copied:
            item._take_dtype(self.compute)
        before = [dict(vars(item)) for _, item in copied]
        args, keywords = _cast((args, keywords), self.compute)
        try:
            result = call_forward(copy, args, keywords)
        finally:
            for (original, item), old in zip(copied, before, strict=True):
                _take_over(original, item, old)
        return result if self.output is None else _cast(result, self.output)


def _take_over(original: Module, copy: Module, before: dict[str, Any]) -> None:
    """Give a module the attributes that ``forward`` has set on its copy."""
    for name, value in vars(copy).items():
        if name != STATE and (name not in before or before[name] is not value):
            setattr(original, name, value)


def _with_own_precision(module: Module) -> list[Module]:
    """The modules below one that have a precision of their own: they convert for themselves."""
    below = module.modules()[1:]
    return [module for module in below if module._module_state.precision is not None]


def _float(dtype: DTypeLike, name: str) -> DType:
    found = as_dtype(dtype, "nn.Precision")
    if not found.is_float:
        raise DTypeError(f"{name} is a float dtype, not {found}", operation="nn.Precision")
    return found


def _as(x: Tensor, dtype: DType) -> Tensor:
    return x if x.dtype is dtype else x.astype(dtype)


def _cast(tree: Any, dtype: DType) -> Any:
    """Containers with their float tensors in a dtype."""
    return map_leaves(
        lambda leaf: _as(leaf, dtype) if isinstance(leaf, Tensor) and leaf.dtype.is_float else leaf,
        tree,
    )
