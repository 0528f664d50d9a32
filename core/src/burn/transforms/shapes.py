"""`eval_shape`: what a function returns, without computing it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from burn.transforms._arguments import check_callable

__all__ = ["eval_shape"]


def eval_shape(function: Callable[..., Any], /, *examples: Any) -> Any:
    """Shapes and dtypes of what a function returns, without computing it.

    Parameters
    ----------
    function : callable
        As for `burn.ir.trace`.
    *examples : Tensor, TensorSpec, containers of them, or any other value
        Arguments of the function.

    Returns
    -------
    object
        The result with a `burn.ir.TensorSpec` for each tensor.

    Raises
    ------
    TraceError
        If the function needs the value of a tensor, or keeps a tensor elsewhere than in its result.

    Examples
    --------
    >>> import burn
    >>> x = burn.ir.TensorSpec((1000000, 3), burn.float32, "cpu")
    >>> burn.eval_shape(lambda x: x.mT @ x, x).shape
    (3, 3)
    """
    from burn.transforms.tracing import specs  # takes long to import, and few programs need it

    check_callable(function, "eval_shape")
    return specs(function, examples)
