"""`checkpoint`: a function whose intermediate values are computed again in the backward pass."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from burn.autodiff import (
    AutodiffTensor,
    Capture,
    Replay,
    backward_all,
    custom_node,
    is_tracked,
    recording,
    running_again,
)
from burn.batching import BatchedTensor
from burn.devices import VMAP, Transform, each_layer, transforms
from burn.dispatch import common_device, join_trace, meta_of
from burn.dtype import Kind
from burn.errors import AutodiffError
from burn.functions.common import dispatch
from burn.functions.views import independent
from burn.generator import GeneratorState, logged, replayed
from burn.transforms._arguments import (
    check_callable,
    check_tensors,
    lifted,
    map_tensors,
    resumed,
)
from burn.tree import flatten, unflatten

if TYPE_CHECKING:
    from burn.autodiff import Node
    from burn.batching import Frame
    from burn.devices import Device
    from burn.ops import OpTable
    from burn.tensor.tensor import Tensor

__all__ = ["checkpoint"]


def checkpoint(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that keeps none of its intermediate values for the backward pass.

    They are computed again there, by a second call of the function with the same arguments and the
    same random numbers. Gradients are the same, also those of tracked tensors that the function
    takes from elsewhere.

    Parameters
    ----------
    function : callable
        Takes and returns tensors in any containers, and has no other effect.

    Returns
    -------
    callable
        Takes the arguments of the function and returns its result.

    Raises
    ------
    AutodiffError
        In the backward pass, if the function uses other tracked tensors than in the first call.

    Notes
    -----
    The second call uses what the function takes from elsewhere as it is then: do not write to such
    tensors before the backward pass, or pass them as arguments, of which the values are kept.

    See Also
    --------
    Device.gradient_checkpointing : for all ops on a device, those that are cheap alone.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([0.5, 1.0], device=burn.Device("cpu").autodiff()).require_grad()
    >>> y = burn.checkpoint(lambda x: burn.square(x * x + 1))(x)
    >>> x.grad(y.sum().backward())
    Tensor([2.5, 8. ], device='cpu:0')
    """
    check_callable(function, "checkpoint")

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        state = recording.get()
        if not state and not isinstance(state, Replay):
            return function(*args, **kwargs)
        region = _Region(function, args, kwargs)
        result = region.run()
        leaves, structure = flatten(result)
        check_tensors(leaves, result, "result", "checkpoint")
        return unflatten(structure, region.tracked(leaves))

    return call


def _other(x: Tensor) -> Tensor:
    """Another tensor with the same primitive."""
    join_trace(x)
    return dispatch.wrap(x.primitive, x.tensor_type)


class _Region:
    """One call of a function of `checkpoint`.

    Attributes
    ----------
    levels : dict
        For the tracked tensor class of each layer: the tracked tensors that the call used.
    """

    def __init__(
        self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        self._function = function
        # Other tensors, since the caller may write to its own.
        self._arguments = map_tensors(_other, (args, kwargs))
        self._stack: tuple[Transform, ...] = transforms()
        self._states: list[GeneratorState] = []
        self._metas: list[Any] = []
        self.levels: dict[type[AutodiffTensor], dict[Node, AutodiffTensor]] = {}

    def _call(self) -> Any:
        # The function may write to its arguments, which a leaf does not permit.
        args, kwargs = map_tensors(independent, self._arguments)
        return self._function(*args, **kwargs)

    def run(self) -> Any:
        """The result, which is not recorded; notes which tracked tensors it was computed from."""
        capture = Capture(len(self._stack) + 1)
        token = recording.set(capture)
        try:
            with logged() as self._states:
                return self._call()
        finally:
            recording.reset(token)
            self.levels = capture.tensors

    def tracked(self, results: list[Tensor]) -> list[Tensor]:
        """The results, each tracked by all layers in which the call used tracked tensors."""
        self._metas = [meta_of(result) for result in results]
        of_hardware: dict[Device, list[int]] = {}
        for index, result in enumerate(results):
            # A tensor from elsewhere that is returned as it is may be tracked.
            if result.dtype.kind is Kind.FLOAT and not is_tracked(result.primitive):
                of_hardware.setdefault(result.device, []).append(index)
        made = list(results)
        for indices in of_hardware.values():
            tensors = self._recorded([results[index] for index in indices], indices)
            for index, tensor in zip(indices, tensors, strict=True):
                made[index] = tensor
        return made

    def _recorded(self, results: list[Tensor], indices: list[int]) -> list[Tensor]:
        """The results on one hardware with a node in each layer in which tensors were tracked."""
        device: Device = functools.reduce(common_device, [result.device for result in results])
        unbatched = [_unbatched(result.primitive) for result in results]
        primitives = [primitive for primitive, _ in unbatched]
        for level, at_layer in enumerate(each_layer(device)):
            kind = at_layer.backend.tensor_type
            nodes = [
                node for name, used in self.levels.items() if name.level == level for node in used
            ]
            if at_layer.layers[-1] == VMAP:
                primitives = [
                    at_layer.backend.wrap(primitive, frames[kind]) if kind in frames else primitive
                    for primitive, (_, frames) in zip(primitives, unbatched, strict=True)
                ]
            elif nodes:
                pull = functools.partial(self._pull, at_layer, nodes, indices)
                below = at_layer.below.ops
                primitives = list(custom_node(kind, nodes, primitives, pull, below, "checkpoint"))
        return [
            dispatch.wrap(primitive, device.tensor_type(result.dtype))
            for result, primitive in zip(results, primitives, strict=True)
        ]

    def _pull(
        self,
        device: Device,
        nodes: list[Node],
        indices: list[int],
        ops: OpTable,
        cotangents: Sequence[Any],
    ) -> list[Any]:
        """The gradient of each tracked tensor that the call used, in one layer."""
        known = {node for used in self.levels.values() for node in used}
        token = recording.set(Replay(known, len(self._stack) + 1))
        again = running_again.set(True)
        try:
            with resumed(self._stack), replayed(self._states):
                leaves = flatten(self._call())[0]
        finally:
            running_again.reset(again)
            recording.reset(token)
        metas = [meta_of(leaf) for leaf in leaves]
        if metas != self._metas:
            raise AutodiffError(
                f"the function returned {_shown(metas)} when it ran again, and at first "
                f"{_shown(self._metas)}",
                hint="It must return the same for the same arguments",
                operation="checkpoint",
            )
        kind = device.backend.tensor_type
        outputs = [_at_level(leaves[index].primitive, kind) for index in indices]
        pairs = [
            (output, cotangent)
            for output, cotangent in zip(outputs, cotangents, strict=True)
            if output is not None and cotangent is not None
        ]
        if not pairs:
            return [None] * len(nodes)
        own = device.below.ops
        lift = None if ops is own else functools.partial(lifted, operation="checkpoint")
        roots, starts = zip(*pairs, strict=True)
        found = backward_all(roots, starts, cut=frozenset(nodes), lift=lift)
        return [found.get(node) for node in nodes]


def _shown(metas: list[Any]) -> str:
    return ", ".join(map(str, metas)) or "nothing"


def _unbatched(primitive: Any) -> tuple[Any, dict[type, Frame]]:
    """An untracked primitive with all batch axes, and the frame of each by its tensor class."""
    frames: dict[type, Frame] = {}
    while isinstance(primitive, BatchedTensor):
        frames[type(primitive)] = primitive.frame
        primitive = primitive.primitive
    return primitive, frames


def _at_level(primitive: Any, kind: type) -> Any:
    """The primitive that one layer tracks, below the wrappers of the layers above; else None."""
    while primitive.__class__ is not kind:
        if not isinstance(primitive, (AutodiffTensor, BatchedTensor)):
            return None
        primitive = primitive.primitive
    return primitive
