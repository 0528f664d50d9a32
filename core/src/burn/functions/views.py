"""Views: tensors that share elements with another one, and writes that change all of them.

A view is the output of ops that rearrange elements. It holds its *root*, which is no view, and the
ops that lead from the root to it; a view of a view composes them. The root holds its views weakly.
Primitives never change: a write gives the root a new one, computed by the inverse writes of the
ops, and every live view a new one computed from that. So readers pay nothing. Elements are written
in place only where a backend finds that no other object shares its memory (`Backend.can_write`).

Writes of all threads hold one lock. A view that one thread makes while another one writes is
computed again. Views that a trace makes are known in that trace alone
(`burn.transforms._stand_ins`): a write of another thread has no value for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from weakref import ref

from burn.autodiff import Capture, is_wrapped, recording
from burn.devices import running_trace
from burn.dispatch import (
    DispatchTensor,
    call_of,
    dtype_with_number,
    join_trace,
)
from burn.errors import AutodiffError, OperandTypeError, ShapeError, UnsupportedOpError
from burn.functions import calls
from burn.functions._quantized_storage import stored_as
from burn.functions.common import dispatch
from burn.functions.normalize import as_scalar
from burn.locks import new_rlock
from burn.ops import REGISTRY, Tag
from burn.ops.quantized_primitive import is_quantized

if TYPE_CHECKING:
    from burn.aliases import Primitive, Scalar, Slices
    from burn.tensor.tensor import Tensor

__all__ = [
    "Step",
    "assign_slice",
    "base_of",
    "has_views",
    "independent",
    "is_view",
    "is_view_of",
    "rebind",
    "root_of",
    "view_by",
    "viewing",
    "write",
]

Step: TypeAlias = tuple[str, tuple[Any, ...]]
"""A view op and the values of its attributes, in the order of the definition."""

Link: TypeAlias = "tuple[Tensor, Link | None, str, tuple[Any, ...]]"
"""Of a view: its root, the link of the view that it was made of, if it was none of the root itself,
and the op that made it. Views of views share their links."""

_held_link: Final[Any] = vars(DispatchTensor)["link"]
"""The descriptor of the slot, which traces do not change."""

_lock = new_rlock()
"""Held while a write reads, computes and rebinds."""


class Views:
    """Where tensors become views of others.

    Attributes
    ----------
    writes : int
        Number of finished writes. It changes while a view is made if another thread writes.
    """

    __slots__ = ("writes",)

    def __init__(self) -> None:
        self.writes = 0

    def of(self, root: Tensor) -> set[ref[Tensor]]:
        """The set of the views of a root."""
        if root.link is None:
            with _lock:
                if root.link is None:
                    root.link = set()
        return root.link  # type: ignore[no-any-return]  # of a root

    def add(
        self, result: Tensor, x: Tensor, name: str, values: tuple[Any, ...], writes: int
    ) -> Tensor:
        """Make a tensor a view of another one by an op; `writes` is of before it was made."""
        link = x.link if is_view(x) else None
        root = root_of(x)
        result.link = (root, link, name, values)
        views = self.of(root)
        views.add(ref(result, views.discard))
        if writes != self.writes:
            self.compute(result)
        return result

    def compute(self, x: Tensor) -> None:
        """Compute a view again that was made while another thread wrote.

        In a trace its value is that of the program, which another thread does not change.
        """
        if not x.tensor_type.device.is_traced:
            _compute(x)


_views: Final = Views()

_VIEW_OPS: Final = {
    name: call_of(dispatch, name, views=_views)
    for name, op in REGISTRY.items()
    if Tag.VIEW in op.tags and op.attributes
}


def viewing(name: str) -> Callable[..., Tensor]:
    """Function of a tensor and values of attributes that makes a view of it by an op."""
    return _VIEW_OPS[name]


def view_by(x: Tensor, steps: Sequence[Step], *, is_tracked: bool = True) -> Tensor:
    """The view of a tensor that ops make, one after the other; no gradient if it is untracked."""
    if not is_tracked:
        token = recording.set(False)
        try:
            return view_by(x, steps)
        finally:
            recording.reset(token)
    for name, values in steps:
        x = _VIEW_OPS[name](x, *values)
    return x


def independent(x: Tensor) -> Tensor:
    """The value of a tensor in another one that is no view, and no leaf but computed from `x`."""
    if dispatch.is_tracked(x):
        return calls.reshape(x, shape=x.shape)
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
    root, link = _origin(x)
    value_root, value_link = _origin(value)
    for step in reversed(steps):
        if value_link is None or value_link[2:] != step:
            return False
        value_link = value_link[1]
    return value_root is root and value_link is link


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
        root, link = _writable_origin(x, operation)
        value = compute()
        _check_same(x, value, operation)
        if link is not None:  # a root takes the new primitive, which costs nothing
            whole = tuple([(0, length, 1) for length in x.shape])
            if _assign_in_place(root, x, value, whole):
                return
        _rebind(root, _written(root, link, value))


def assign_slice(x: Tensor, value: Tensor | Scalar, slices: Slices) -> None:
    """Assign a number, or a tensor of the slice's shape and the dtype of `x`, to a slice."""
    with _lock:
        root, link = _writable_origin(x, "indexing")
        if _assign_in_place(root, x, value, slices):
            return
        result = calls.slice_assign(x, value, slices=slices)
        _check_same(x, result, "indexing")
        _rebind(root, _written(root, link, result))


def rebind(x: Tensor, value: Tensor) -> None:
    """Let an object hold what another tensor holds; views of it are computed again.

    A view is independent of its root from then on. `value` is no view, and has the shape of `x`.
    """
    if x.link is None:  # without views, as most tensors are
        _assign(x, value)
        return
    with _lock:
        if is_view(x):
            if value.tensor_type.device.is_traced:
                join_trace(x)  # it remains a view outside
            views = _views.of(root_of(x))
            views.difference_update([view for view in views if view() is x])
            x.link = None
        _rebind(x, value)


def _apply(steps: Sequence[Step], x: Tensor) -> Tensor:
    """The value of a view of a tensor, in a tensor that is no view."""
    if not steps:
        return independent(x)
    for name, values in steps:
        x = getattr(calls, name)(x, **_attributes(name, values))
    return x


def _attributes(name: str, values: tuple[Any, ...]) -> dict[str, Any]:
    return dict(zip(REGISTRY[name].attributes, values, strict=True))


def _origin(x: DispatchTensor) -> tuple[Any, Link | None]:
    """The root of a tensor, and its link if it is a view."""
    link = x.link
    return (link[0], link) if link.__class__ is tuple else (x, None)


def root_of(x: Tensor) -> Tensor:
    """The tensor whose elements a tensor has: itself if it is no view."""
    return _origin(x)[0]  # type: ignore[no-any-return]  # a tensor of the class of `x`


def base_of(x: Tensor, others: Iterable[Tensor] = ()) -> tuple[Tensor, tuple[Step, ...]]:
    """The root of a view, or the nearest of other views that it was made of, and the ops since."""
    links = {id(other.link): other for other in others if is_view(other)}
    steps, link = [], x.link
    while link is not None and id(link) not in links:
        _, link, name, values = link
        steps.append((name, values))
    return root_of(x) if link is None else links[id(link)], tuple(steps[::-1])


def _live_views(root: Tensor) -> list[Tensor]:
    """The views of a root that this thread sees: in a trace also those that it has made."""
    if root.link is None:
        return []
    links = [_held_link.__get__(root)]
    trace = running_trace()
    while trace is not None:
        links.append(trace.stand_ins.values.get(id(root), {}).get("link"))
        trace = trace.outer
    views = [view() for link in links if link.__class__ is set for view in list(link)]
    # In a trace a view from outside may have become independent.
    return [view for view in views if view is not None and root_of(view) is root]


def _steps_of(link: Link | None) -> list[Step]:
    """The ops from the root on to a view."""
    steps: list[Step] = []
    while link is not None:
        _, link, name, values = link
        steps.append((name, values))
    return steps[::-1]


def _writable_origin(x: Tensor, operation: str) -> tuple[Tensor, Link | None]:
    """`_origin` of a tensor that may be written to."""
    root, link = _origin(x)
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
    for name, _ in _steps_of(link):
        if REGISTRY[name].write is None:
            raise UnsupportedOpError(
                "cannot write to a result of broadcast_to, in which elements repeat",
                hint="Copy it first, with .astype(x.dtype), or write to the tensor it is a view of",
                operation=operation,
            )
    return root, link


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


def _written(root: Tensor, link: Link | None, value: Tensor) -> Tensor:
    """The value of a root after an assignment to the view with this link."""
    steps = _steps_of(link)
    operands = [root]
    for step in steps[:-1]:
        operands.append(_apply([step], operands[-1]))
    for (name, values), operand in zip(reversed(steps), reversed(operands), strict=False):
        rule: Any = REGISTRY[name].write
        value = rule(dispatch, operand, value, **_attributes(name, values))
    if is_quantized(root.primitive) and value.dtype is not root.dtype:
        # By views and their inverse, blocks and words may come to be named otherwise.
        return stored_as(value, root.dtype.scheme)
    return value


def _rebind(root: Tensor, value: Tensor) -> None:
    """Give a root and its views new values; all are computed before any is changed."""
    views = _live_views(root)
    values = [_apply(_steps_of(view.link), value) for view in views]
    if dispatch.is_tracked(root):  # a view made inside burn.no_grad() stays untracked
        values = [
            new if dispatch.is_tracked(view) else dispatch.detach(new)
            for view, new in zip(views, values, strict=True)
        ]
    _assign(root, value)
    for view, new in zip(views, values, strict=True):
        _assign(view, new)
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


def _compute(x: Tensor) -> None:
    """Compute a view again from its root, between two writes."""
    with _lock:
        _assign(x, _apply(_steps_of(x.link), root_of(x)))


def _finish_write(root: Tensor, done: Sequence[Tensor]) -> None:
    """Count a write, and recompute the views that were made while it ran."""
    _views.writes += 1  # under the lock only
    known = {id(tensor) for tensor in done}
    for live_view in _live_views(root):
        if id(live_view) not in known:
            _compute(live_view)


def _assign_in_place(root: Tensor, x: Tensor, value: Tensor | Scalar, slices: Slices) -> bool:
    """Assign to a slice in the memory of the root, if the backend permits it."""
    tensor_type = root.tensor_type
    device = tensor_type.device
    backend = device.ops.backend
    if is_wrapped(root.primitive) or is_quantized(root.primitive):
        return False
    if x.tensor_type.device is not device:  # a view that was kept from a trace, which says so
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
        source = as_scalar(value, tensor_type.dtype, "indexing")
    else:
        return False
    views = _live_views(root)
    if not backend.can_write(root.primitive, [view.primitive for view in views]):
        return False
    backend.write_slice(x.primitive, source, slices=slices)
    _finish_write(root, views)
    return True
