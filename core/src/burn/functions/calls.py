"""Calls of ops by their names: ``calls.add(x1, x2)`` in functions, `apply_op` for users."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from burn.dispatch import call_of
from burn.errors import ArgumentError, OperandTypeError
from burn.functions.common import dispatch
from burn.ops import REGISTRY, Op
from burn.public_calls import did_you_mean, passes_on

if TYPE_CHECKING:
    from collections.abc import Callable

    from burn.tensor.tensor import Tensor

__all__ = ["apply_op"]


def __getattr__(name: str) -> Callable[..., Tensor]:
    """The call of an op, made when it is first asked for; an attribute from then on."""
    if name not in REGISTRY:
        raise AttributeError(f"there is no op {name!r}")
    call: Callable[..., Tensor] = call_of(dispatch, name)
    globals()[name] = call
    return call


@passes_on
def apply_op(op: Op | str, /, *operands: Any, **attributes: Any) -> Any:
    """Run an op of the op table: one of your own, or one without a public function.

    It runs like every function: on the device of the tensors, with promotion, gradients, the
    transforms, and errors that name the op.

    Parameters
    ----------
    op : Op or str
        The op, or its name.
    *operands : Tensor, number, None or list of Tensor
        The operands in order; at least one is a tensor.
    **attributes : object
        The attributes, as the op defines them: axes count from the front, and a dtype is a `DType`.

    Returns
    -------
    Tensor or tuple of Tensor
        A tuple for an op with several outputs.

    Raises
    ------
    ArgumentError
        If there is no op of this name.
    OperandTypeError
        If the operands or attributes are not those of the op, or none is a tensor.
    BurnError
        Of the class that fits, if the op refuses them.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([-1.0, 2.0], device="cpu")
    >>> burn.apply_op("relu_grad", burn.nn.functional.relu(x), burn.ones_like(x))
    Tensor([0., 1.], device='cpu:0')
    """
    name = op.name if isinstance(op, Op) else op
    if not isinstance(name, str):
        raise OperandTypeError(
            f"an op or the name of one is expected, not an object of type {type(op).__name__}",
            operation="apply_op",
        )
    if name not in REGISTRY:
        raise ArgumentError(
            f"there is no op {name!r}",
            hint=did_you_mean(name, REGISTRY, "burn.ops.REGISTRY has all ops"),
            operation="apply_op",
        )
    known = REGISTRY[name].attributes
    for attribute in attributes:
        if attribute not in known:
            raise OperandTypeError(
                f"has no attribute {attribute!r}",
                hint=f"It has: {', '.join(known) or 'none'}",
                operation=name,
            )
    return dispatch.execute(name, *operands, **attributes)
