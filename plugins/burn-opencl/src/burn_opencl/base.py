"""OpenClOps: the typed base of the mixins of `OpenClDevice`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from burn.plugin_api import REGISTRY, Backend, Meta

if TYPE_CHECKING:
    from burn.plugin_api import DeviceId, Primitive, Shape
    from burn_opencl.buffers import Buffer
    from burn_opencl.launcher import Launcher
    from burn_opencl.staging import Uploads

__all__ = ["OpenClOps", "check_axis", "inferred_shape"]


class OpenClOps(Backend):
    """Ops on buffers of one device.

    Each mixin adds methods for one family of ops; one that calls methods of another family
    inherits from its mixin. What a method leaves to the default of its op it computes with
    ``self.ops.decomposed``.

    Attributes
    ----------
    device : DeviceId
        The device.
    launcher : Launcher
        Its kernels and memory.
    uploads : Uploads
        Copies from the host to it.
    tables : callable
        Returns arrays that a function computes on the host as buffers, and caches them:
        ``tables(function, *arguments)``.
    """

    device: DeviceId
    launcher: Launcher
    uploads: Uploads
    tables: Callable[..., list[Buffer]]


def inferred_shape(name: str, *operands: Primitive | None, **attributes: Any) -> Shape:
    """Shape of the first output of an op; raises what the op raises for its operands.

    None stands for an optional operand that is absent.
    """
    metas = [
        None if operand is None else Meta(operand.shape, operand.dtype) for operand in operands
    ]
    outputs = REGISTRY[name].infer(*metas, **attributes)
    first = outputs if isinstance(outputs, Meta) else outputs[0]
    return first.shape


def check_axis(x: Buffer, *axes: int) -> None:
    """Refuse axes that a tensor does not have, or that repeat.

    Raises
    ------
    IndexError
        If there is such an axis.
    """
    rank = len(x.shape)
    if len(set(axes)) != len(axes) or not all(0 <= axis < rank for axis in axes):
        raise IndexError(f"axes {axes} of a tensor with {rank}")
