"""Clipping: gradients that are kept from becoming too large."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from burn.dispatch import Gradients
from burn.functions.data_type import result_type
from burn.functions.elementwise import clip, minimum
from burn.functions.gradient import global_norm
from burn.ops.arguments import real_number
from burn.public_calls import has_functions
from burn.tree import flatten, unflatten

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["clip_by_global_norm", "clip_by_value"]

has_functions(__name__, names=__all__)

_EPSILON = 1e-6
"""Added to a norm that divides, as in PyTorch."""


def clip_by_value(gradients: Any, limit: float) -> Any:
    """Gradients with every element between ``-limit`` and ``limit``.

    Parameters
    ----------
    gradients : Gradients, or containers of tensors (see `burn.tree`)
        They are unchanged.
    limit : float
        Largest magnitude, above 0.

    Returns
    -------
    Gradients, or the same containers
        New gradients.

    Raises
    ------
    ArgumentError
        If the limit is not above 0.

    Examples
    --------
    >>> import burn
    >>> gradients = {"x": burn.asarray([3.0, -4.0], device="cpu")}
    >>> burn.optim.clip_by_value(gradients, 3.5)["x"].tolist()
    [3.0, -3.5]
    """
    limit = real_number(limit, "limit", "clip_by_value", above=0.0)
    return _with_all(gradients, lambda found: _within(found, limit))


def clip_by_global_norm(gradients: Any, limit: float) -> tuple[Any, Tensor]:
    """Gradients scaled down to a norm of at most `limit`, all of them together.

    The norm is not read: the device that computes it scales the gradients.

    Parameters
    ----------
    gradients : Gradients, or containers of tensors (see `burn.tree`)
        They are unchanged.
    limit : float
        Largest norm, above 0.

    Returns
    -------
    gradients : Gradients, or the same containers
        New gradients; not finite if the norm is not.
    norm : Tensor
        What `burn.global_norm` gives for the gradients before.

    Raises
    ------
    ArgumentError
        If the limit is not above 0, or there is no gradient.

    Examples
    --------
    >>> import burn
    >>> gradients = {"x": burn.asarray([3.0, -4.0], device="cpu")}
    >>> clipped, norm = burn.optim.clip_by_global_norm(gradients, 0.5)
    >>> norm.item(), [round(one, 4) for one in clipped["x"].tolist()]
    (5.0, [0.3, -0.4])
    """
    limit = real_number(limit, "limit", "clip_by_global_norm", above=0.0)
    norm: list[Tensor] = []

    def scaled(found: list[Tensor]) -> list[Tensor]:
        norm.append(global_norm(found))
        return _scaled(found, norm[0], limit)

    return _with_all(gradients, scaled), norm[0]


def clipped(
    gradients: list[Tensor], *, clip_value: float | None, clip_norm: float | None
) -> list[Tensor]:
    """Gradients that were clipped by value first, and then by their norm."""
    if clip_value is not None:
        gradients = _within(gradients, clip_value)
    if clip_norm is not None:
        gradients = _scaled(gradients, global_norm(gradients), clip_norm)
    return gradients


def _within(gradients: Sequence[Tensor], limit: float) -> list[Tensor]:
    return [clip(gradient, -limit, limit) for gradient in gradients]


def _scaled(gradients: Sequence[Tensor], norm: Tensor, limit: float) -> list[Tensor]:
    factor = minimum(limit / (norm + _EPSILON), 1.0)
    factors: dict[Any, Tensor] = {}
    scaled = []
    for gradient in gradients:
        kind = gradient.device.hardware, gradient.dtype
        if kind not in factors:
            here = (
                factor if factor.device.hardware is kind[0] else factor.to_device(gradient.device)
            )
            factors[kind] = here.astype(result_type(gradient))
        scaled.append(gradient * factors[kind])
    return scaled


def _with_all(gradients: Any, function: Any) -> Any:
    """The containers with what a function returns for the list of all gradients in them."""
    if isinstance(gradients, Gradients):
        new = iter(function(list(gradients.values())))
        return gradients.map(lambda _: next(new))
    leaves, structure = flatten(gradients)
    return unflatten(structure, function(leaves))
