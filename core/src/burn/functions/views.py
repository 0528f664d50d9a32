"""Views: tensors that share elements with another one, and writes that change all of them.

A view is the output of ops that rearrange elements. It holds its *root*, which is no view, and the
ops that lead from the root to it; a view of a view composes them. The root holds its views weakly.
Primitives never change: a write gives the root a new one, computed by the inverse writes of the
ops, and every live view a new one computed from that. So readers pay nothing. Elements are written
in place only where a backend finds that no other object shares its memory (`Backend.can_write`).

Writes of all threads hold one lock. A view that one thread makes while another one writes is
computed again.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from weakref import ref

from burn.autodiff import Capture, is_wrapped, recording
from burn.dispatch import (
    DispatchTensor,
    call_of,
    dtype_with_number,
    join_trace,
    to_scalar,
)
from burn.errors import AutodiffError, OperandTypeError, ShapeError, UnsupportedOpError
from burn.functions import calls
from burn.functions.common import dispatch
from burn.ops import REGISTRY

if TYPE_CHECKING:
    from burn.aliases import Primitive, Scalar, Slices
    from burn.tensor.tensor import Tensor

__all__ = [
    "Step",
    "assign_slice",
    "has_views",
    "independent",
    "is_view",
    "is_view_of",
    "rebind",
    "root_of",
    "view_by_steps",
    "viewing",
    "write",
]

Step: TypeAlias = tuple[str, dict[str, Any]]
"""A view op and its attributes."""

Path: TypeAlias = "tuple[Path | None, str, dict[str, Any]]"
"""The ops from a root to a view: the path of the view that it was made of, and the name and the
attributes of the last op. Views of views share their paths."""

_VIEW_OPS: Final = {
    name: call_of(dispatch, name) for name in ("expand", "flip", "permute", "reshape", "slice")
}

_lock = threading.RLock()
"""Held while a write reads, computes and rebinds."""

_writes = 0
"""Number of finished writes. It changes while a view is made if another thread writes."""


def _after_fork() -> None:
    global _lock  # noqa: PLW0603 — another thread of the parent may have held it
    _lock = threading.RLock()


if hasattr(os, "register_at_fork"):  # POSIX
    os.register_at_fork(after_in_child=_after_fork)


def viewing(name: str) -> Callable[[Tensor, dict[str, Any]], Tensor]:
    """Function of a tensor and attributes that makes a view of it by an op."""
    function = _VIEW_OPS[name]

    def view(x: Tensor, attrs: dict[str, Any], /) -> Tensor:
        writes = _writes
        result = function(x, **attrs)
        link = x.link
        root, path = link if link.__class__ is tuple else (x, None)
        return _registered(result, root, (path, name, attrs), writes)

    return view


def view_by_steps(x: Tensor, steps: Sequence[Step]) -> Tensor:
    """A view of a tensor by some view ops, or by none."""
    writes = _writes
    result = _apply(steps, x)
    root, path = _origin(x)
    for name, attrs in steps:
        path = (path, name, attrs)
    return _registered(result, root, path, writes)


def _registered(result: Tensor, root: Tensor, path: Path | None, writes: int) -> Tensor:
    """Make a tensor the view at the end of a path; `writes` counts from before it was made."""
    result.link = (root, path)
    views = root.link
    if views is None:
        views = _views_of(root)
    views.add(ref(result, views.discard))
    if writes != _writes:
        _recompute(result)
    return result


def independent(x: Tensor) -> Tensor:
    """The value of a tensor in another one that is no view, and no leaf but computed from `x`."""
    if dispatch.is_tracked(x):
        return _VIEW_OPS["reshape"](x, shape=x.shape)
    join_trace(x)
    return dispatch.wrap(x.primitive, x.tensor_type)


def is_view(x: Tensor) -> bool:
    """Whether a tensor is a view of another one."""
    return x.link.__class__ is tuple


def has_views(x: Tensor) -> bool:
    """Whether another tensor shares elements with a tensor: it is a view, or one of it is alive."""
    return is_view(x) or bool(_live_views(x))


def is_view_of(value: object, x: Tensor, steps: Sequence[Step]) -> bool:
    """Whether a value is the view of `x` by these ops, and so has its elements already."""
    if not isinstance(value, DispatchTensor) or value.link.__class__ is not tuple:
        return False
    root, path = _origin(x)
    value_root, value_path = value.link
    for step in reversed(steps):
        if value_path is None or value_path[1:] != step:
            return False
        value_path = value_path[0]
    return value_root is root and value_path is path


def write(x: Tensor, compute: Callable[[], Tensor], operation: str) -> None:
    """Replace the value of a tensor, and of all tensors that share elements with it.

    Parameters
    ----------
    x : Tensor
        A root or a view.
    compute : callable
        Returns the new value, of the shape and dtype of `x`; called while no other write runs.
    operation : str
        Name of the operation in errors.

    Raises
    ------
    AutodiffError
        If `x` is a leaf or a view of one, or tracked inside ``burn.no_grad()``.
    UnsupportedOpError
        If `x` has one element of the root at several indices.
    ShapeError, OperandTypeError
        If the value has another shape or dtype.
    """
    with _lock:
        root, path = _writable_origin(x, operation)
        value = compute()
        _check_same(x, value, operation)
        if path is not None:  # a root takes the new primitive, which costs nothing
            whole = tuple([(0, length, 1) for length in x.shape])
            if _assign_in_place(root, x, value, whole):
                return
        _rebind(root, _written(root, path, value))


def assign_slice(x: Tensor, value: Tensor | Scalar, slices: Slices) -> None:
    """Assign a number, or a tensor of the slice's shape and the dtype of `x`, to a slice."""
    with _lock:
        root, path = _writable_origin(x, "indexing")
        if _assign_in_place(root, x, value, slices):
            return
        result = calls.slice_assign(x, value, slices=slices)
        _check_same(x, result, "indexing")
        _rebind(root, _written(root, path, result))


def rebind(x: Tensor, value: Tensor) -> None:
    """Let an object hold what another tensor holds; views of it are computed again.

    A view is independent of its root from then on. `value` is no view, and has the shape of `x`.
    """
    if x.link is None:  # without views, as most tensors are
        _assign(x, value)
        return
    with _lock:
        if is_view(x):
            views = _views_of(root_of(x))
            views.difference_update([one for one in views if one() is x])
            x.link = None
        _rebind(x, value)


def _apply(steps: Sequence[Step], x: Tensor) -> Tensor:
    if not steps:
        return independent(x)
    for name, attrs in steps:
        x = _VIEW_OPS[name](x, **attrs)
    return x


def _views_of(root: Tensor) -> set[ref[Tensor]]:
    """The set of the views of a root."""
    if root.link is None:
        with _lock:
            if root.link is None:
                root.link = set()
    return root.link  # type: ignore[no-any-return]  # of a root


def _origin(x: Tensor) -> tuple[Tensor, Path | None]:
    """The root of a tensor, and the path to it from there."""
    return x.link if x.link.__class__ is tuple else (x, None)


def root_of(x: Tensor) -> Tensor:
    """The tensor whose elements a tensor has: itself if it is no view."""
    return _origin(x)[0]


def _live_views(root: Tensor) -> list[Tensor]:
    views = [] if root.link is None else list(root.link)
    return [one for one in [view() for view in views] if one is not None]


def _steps_of(path: Path | None) -> list[Step]:
    """The steps of a path, from the root on."""
    steps: list[Step] = []
    while path is not None:
        path, name, attrs = path
        steps.append((name, attrs))
    return steps[::-1]


def _writable_origin(x: Tensor, operation: str) -> tuple[Tensor, Path | None]:
    """The root of a tensor that may be written to, and the path to it from there."""
    root, path = _origin(x)
    join_trace(root)
    if dispatch.is_tracked(root):
        if dispatch.is_require_grad(root):
            what = "a leaf" if x is root else "a view of a leaf"
            raise AutodiffError(
                f"cannot write to {what} that requires gradients",
                hint="Write to y = burn.asarray(x, copy=True), whose gradient goes on to x; or "
                "write to y = x.detach() and make it a new leaf with y.require_grad()",
                operation=operation,
            )
        state = recording.get()
        if isinstance(state, Capture) and len(root.device.layers) <= state.levels:
            raise AutodiffError(
                "cannot write to a tracked tensor from outside inside of burn.checkpoint: the "
                "second call would write again",
                hint="Pass it to the function as an argument, and return what is written",
                operation=operation,
            )
        if state is False:
            raise AutodiffError(
                "cannot write to a tracked tensor inside burn.no_grad(): its graph would be lost",
                hint="Write outside of burn.no_grad(), or to x.detach()",
                operation=operation,
            )
    for name, _ in _steps_of(path):
        if REGISTRY[name].write is None:
            raise UnsupportedOpError(
                "cannot write to a result of broadcast_to, in which elements repeat",
                hint="Copy it first, with .astype(x.dtype), or write to the tensor it is a view of",
                operation=operation,
            )
    return root, path


def _check_same(x: Tensor, value: Tensor, operation: str) -> None:
    if len(value.device.layers) > max(1, len(x.device.layers)):
        transform = value.device.layers[-1]
        raise AutodiffError(
            f"cannot write what burn.{transform} computes to a tensor from outside of its function",
            hint="Return the value, or write to a tensor that is made inside of the function",
            operation=operation,
        )
    if value.shape != x.shape:
        raise ShapeError(
            f"a write in place would change the shape from {x.shape} to {value.shape}",
            hint="Write x = x + y",
            operation=operation,
        )
    if value.dtype is not x.dtype:
        raise OperandTypeError(
            f"a write in place would change the dtype from {x.dtype} to {value.dtype}",
            hint="Write x = x + y, or convert the operand with .astype()",
            operation=operation,
        )


def _written(root: Tensor, path: Path | None, value: Tensor) -> Tensor:
    """The value of a root after an assignment to the view at the end of a path."""
    steps = _steps_of(path)
    operands = [root]
    for step in steps[:-1]:
        operands.append(_apply([step], operands[-1]))
    for (name, attrs), operand in zip(reversed(steps), reversed(operands), strict=False):
        rule: Any = REGISTRY[name].write
        value = rule(dispatch, operand, value, **attrs)
    return value


def _rebind(root: Tensor, value: Tensor) -> None:
    """Give a root and its views new values; all are computed before any is changed."""
    views = _live_views(root)
    values = [_apply(_steps_of(one.link[1]), value) for one in views]
    if dispatch.is_tracked(root):  # a view made inside burn.no_grad() stays untracked
        values = [
            new if dispatch.is_tracked(one) else dispatch.detach(new)
            for one, new in zip(views, values, strict=True)
        ]
    _assign(root, value)
    for one, new in zip(views, values, strict=True):
        _assign(one, new)
    _finish_write(root, views)


def _assign(x: Tensor, value: Tensor) -> None:
    if value.tensor_type.device.is_traced:
        join_trace(x)
    # Another thread may read between the two assignments. In this order it finds a plain primitive
    # on an autodiff device at most, which is valid; the reverse is not.
    if value.tensor_type.device.is_autodiff:
        x.tensor_type, x.primitive = value.tensor_type, value.primitive
    else:
        x.primitive, x.tensor_type = value.primitive, value.tensor_type


def _finish_write(root: Tensor, done: Sequence[Tensor]) -> None:
    """Count a write, and recompute the views that were made while it ran."""
    global _writes  # noqa: PLW0603 — changed under the lock only
    _writes += 1
    known = {id(one) for one in done}
    for one in _live_views(root):
        if id(one) not in known:
            _recompute(one)


def _recompute(x: Tensor) -> None:
    """Compute a view again from its root, between two writes."""
    with _lock:
        root, path = x.link
        _assign(x, _apply(_steps_of(path), root))


def _assign_in_place(root: Tensor, x: Tensor, value: Tensor | Scalar, slices: Slices) -> bool:
    """Assign to a slice in the memory of the root, if the backend permits it."""
    tensor_type = root.tensor_type
    device = tensor_type.device
    backend = device.ops.backend
    if is_wrapped(root.primitive):
        return False
    source: Primitive | Scalar
    if isinstance(value, DispatchTensor):
        # By identity: a constant of the autodiff device moves the tensor to that device.
        if is_wrapped(value.primitive) or not (
            value.device is device or value.device is device.hardware
        ):
            return False
        source = value.primitive
    elif dtype_with_number(tensor_type.dtype, value, device) is tensor_type.dtype:
        source = to_scalar(value, tensor_type.dtype)
    else:
        return False
    views = _live_views(root)
    if not backend.can_write(root.primitive, [one.primitive for one in views]):
        return False
    backend.write_slice(x.primitive, source, slices=slices)
    _finish_write(root, views)
    return True
