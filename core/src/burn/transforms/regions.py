"""`checkpoint`: a function whose intermediate values are computed again in the backward pass."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from burn.autodiff import AutodiffTensor, Capture, backward_all, custom_node, recording
from burn.batching import BatchedTensor
from burn.devices import VMAP, Transform, transforms
from burn.dispatch import DispatchTensor
from burn.errors import AutodiffError
from burn.functions.common import dispatch
from burn.generator import GeneratorState, logged, replayed
from burn.transforms._arguments import check_callable, check_tensors, lifted, resumed
from burn.tree import flatten, unflatten

if TYPE_CHECKING:
    from burn.autodiff import Node
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

    See Also
    --------
    Device.gradient_checkpointing : for all ops on a device, those that are cheap alone.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([0.5, 1.0], device=burn.Device("cpu").autodiff()).require_grad()
    >>> y = burn.checkpoint(lambda x: burn.exp(burn.sin(x)))(x)
    >>> x.grad(y.sum().backward())
    Tensor([1.4174237, 1.2533808], device='cpu:0')
    """
    check_callable(function, "checkpoint")

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if not recording.get():
            return function(*args, **kwargs)
        region = _Region(function, args, kwargs)
        result = region.run()
        leaves, structure = flatten(result)
        check_tensors(leaves, result, "result", "checkpoint")
        return unflatten(structure, region.tracked(leaves)) if region.levels else result

    return call


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
        self._arguments = (args, kwargs)
        self._stack: tuple[Transform, ...] = transforms()
        self._states: list[GeneratorState] = []
        self.levels: dict[type[AutodiffTensor], dict[Node, AutodiffTensor]] = {}
        self._arguments = self._copied()

    def _copied(self) -> Any:
        """The arguments as other tensors, since the caller or the function may write to them."""
        leaves, structure = flatten(list(self._arguments))
        copies = [
            dispatch.wrap(one.primitive, one.tensor_type)
            if isinstance(one, DispatchTensor)
            else one
            for one in leaves
        ]
        return unflatten(structure, copies)

    def _call(self) -> Any:
        args, kwargs = self._copied()
        return self._function(*args, **kwargs)

    def run(self) -> Any:
        """The result, which nothing tracks, and note which tracked tensors it was computed from."""
        capture = Capture()
        token = recording.set(capture)
        try:
            with logged() as self._states:
                return self._call()
        finally:
            recording.reset(token)
            self.levels = capture.tensors

    def tracked(self, results: list[Tensor]) -> list[Tensor]:
        """The results, each tracked by all layers in which the call used tracked tensors."""
        floats = [one for one in results if one.dtype.is_float]
        if not floats:
            return results
        device = floats[0].device
        peeled = [_peeled(one.primitive) for one in floats]
        primitives = [bottom for bottom, _ in peeled]
        for depth, layer in enumerate(device.layers):
            at_layer = device.layered(
                device.layers[: depth + 1], is_checkpointing=device.is_checkpointing
            )
            kind = at_layer.backend.tensor_type
            if layer == VMAP:
                primitives = [
                    at_layer.backend.wrap(one, wrappers[kind]) if kind in wrappers else one
                    for one, (_, wrappers) in zip(primitives, peeled, strict=True)
                ]
            elif kind in self.levels:
                nodes = list(self.levels[kind])
                primitives = list(
                    custom_node(
                        kind,
                        nodes,
                        primitives,
                        functools.partial(self._pull, at_layer, nodes),
                        at_layer.below.ops,
                        "checkpoint",
                    )
                )
        made = {
            id(one): dispatch.wrap(primitive, one.tensor_type)
            for one, primitive in zip(floats, primitives, strict=True)
        }
        return [made.get(id(one), one) for one in results]

    def _pull(
        self, device: Device, nodes: list[Node], ops: OpTable, cotangents: Sequence[Any]
    ) -> list[Any]:
        """The gradient of each tracked tensor that the call used, in one layer."""
        token = recording.set(True)
        try:
            with resumed(self._stack), replayed(self._states):
                leaves = flatten(self._call())[0]
        finally:
            recording.reset(token)
        kind = device.backend.tensor_type
        outputs = [_at_level(one.primitive, kind) for one in leaves if one.dtype.is_float]
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
        gradients = [found.pop(node) for node in nodes]
        if len(found):
            raise AutodiffError(
                "the function used other tracked tensors when it ran again",
                hint="Do not replace what it uses before the backward pass, or pass it as argument",
                operation="checkpoint",
            )
        return gradients


def _copied(x: Any) -> Any:
    """Another tensor with the same primitive."""
    return dispatch.wrap(x.primitive, x.tensor_type) if isinstance(x, DispatchTensor) else x


def _peeled(primitive: Any) -> tuple[Any, dict[type, Any]]:
    """What is below all wrappers of an untracked primitive, and the frame of each batched one."""
    frames: dict[type, Any] = {}
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
