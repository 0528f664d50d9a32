"""`vmap`: a function of one example, run for all examples of a batch at once."""

from __future__ import annotations

import contextlib
import functools
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from burn.batching import Frame
from burn.devices import VMAP, Transform, running, running_trace, transforms, under
from burn.errors import ArgumentError, OperandTypeError, ShapeError
from burn.functions.common import dispatch
from burn.functions.manipulation import moveaxis
from burn.functions.normalize import as_flag
from burn.functions.views import independent
from burn.generator import isolated, reserve
from burn.ops.arguments import python_number
from burn.ops.quantized_primitive import is_quantized
from burn.transforms._arguments import (
    batched,
    check_callable,
    check_layers,
    check_tensors,
    is_tensor,
    layered,
    map_tensors,
    on_device_of_caller,
)
from burn.transforms._quantized_batches import unbatch
from burn.tree import broadcast, flatten, paths, unflatten

if TYPE_CHECKING:
    from burn.generator import Key
    from burn.tensor.tensor import Tensor

__all__ = ["vmap"]


class Vmapped:
    """A function of batches, made by `burn.vmap`.

    Attributes
    ----------
    fallbacks : Counter of str
        How often each op without a batching rule ran in a loop over the examples, by its name.
    """

    def __init__(
        self, function: Callable[..., Any], in_axes: Any, out_axes: Any, *, fallback: bool
    ) -> None:
        functools.update_wrapper(self, function)
        self.fallbacks: Counter[str] = Counter()
        self._function = function
        self._in_axes = in_axes
        self._out_axes = out_axes
        self._fallback = fallback

    def __repr__(self) -> str:
        return f"vmap({self._function!r}, in_axes={self._in_axes}, out_axes={self._out_axes})"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        batch = _Batch(self._function, args, kwargs, self._in_axes)
        transform = Transform(VMAP, is_checkpointing=batch.is_checkpointing)
        frame = transform.frame = Frame(batch.size, allows_fallback=self._fallback)
        transform.words_per_example = batch.words_per_example
        try:
            result = batch.run(transform)
            leaves, structure = flatten(result)
            axes = broadcast(self._out_axes, structure, "vmap: out_axes")
            check_tensors(leaves, result, "result", "vmap")
            names = paths(result, "result")
            outputs = [
                batch.output(leaf, axis, name, transform)
                for leaf, axis, name in zip(leaves, axes, names, strict=True)
            ]
        finally:
            frame.leave()
            self.fallbacks.update(frame.fallbacks)
        batch.finish_draws()
        return unflatten(structure, outputs)


def vmap(
    function: Callable[..., Any],
    in_axes: Any = 0,
    out_axes: Any = 0,
    *,
    fallback: bool = True,
) -> Vmapped:
    """A function of batches, from a function of one example.

    The function runs once: its tensors hide their batch axis, and each op works on all examples.
    The results are those of a loop over the examples, random numbers included.

    Parameters
    ----------
    function : callable
        Takes tensors of one example, in any containers, and returns such.
    in_axes : int, None, or containers of them, optional
        The batch axis of each tensor argument; None for what is the same for all examples. One
        entry stands for all arguments, a sequence has one for each, and an entry stands for all
        tensors of a container. Keyword arguments are the same for all examples.
    out_axes : int, or containers of them, optional
        Where the batch axis of the results goes.
    fallback : bool, optional
        Whether an op without a batching rule may run in a loop over the examples, which is slow;
        False makes that an error. The result counts them: ``vmap(f).fallbacks``.

    Returns
    -------
    callable
        Takes and returns tensors with a batch axis.

    Raises
    ------
    ShapeError
        If the lengths of the batch axes differ; raised by the call, as the errors below.
    ArgumentError
        If no argument has a batch axis, or a tensor does not have the axis.
    AutodiffError
        If the function reads a value (``if``, ``item``), which differs between examples.
    UnsupportedOpError
        If the shape of a result would depend on values, or with ``fallback=False`` an op has no
        batching rule.

    Notes
    -----
    A tensor that is made inside of the function may be written to; one from outside is the same
    for all examples, and a write of values that differ is an error. A function that draws random
    numbers runs once more, for the first example, to count them. A quantized tensor may be mapped
    along an axis whose elements share no scales of blocks, and what the function quantizes has
    scales for each example.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([[1.0, 2.0], [3.0, 4.0]], device="cpu")
    >>> burn.vmap(burn.linalg.vector_norm)(x * x).shape
    (2,)
    >>> loss = lambda weight, x: (weight * x).sum() ** 2
    >>> burn.vmap(burn.grad(loss), in_axes=(None, 0))(burn.ones(2, device="cpu"), x).tolist()
    [[6.0, 12.0], [42.0, 56.0]]
    """
    check_callable(function, "vmap")
    fallback = as_flag(fallback, "fallback", "vmap")
    return Vmapped(function, in_axes, out_axes, fallback=fallback)


class _Batch:
    """The arguments of one call.

    Attributes
    ----------
    size : int
        Number of examples.
    is_checkpointing : bool
        Whether an argument is on a device with gradient checkpointing.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        in_axes: Any,
    ) -> None:
        self._function = function
        self._kwargs = kwargs
        self._stack = transforms()
        self._leaves, self._structure = flatten(args)
        if isinstance(in_axes, list):
            in_axes = tuple(in_axes)
        if isinstance(in_axes, tuple) and len(in_axes) != len(args):
            raise ArgumentError(
                f"in_axes has {len(in_axes)} entries for {len(args)} arguments",
                hint="One entry for each positional argument, or one number for all",
                operation="vmap",
            )
        axes = broadcast(in_axes, self._structure, "vmap: in_axes")
        names = paths(args, "arguments")
        self._axes = [
            _axis_of(leaf, axis, name)
            for leaf, axis, name in zip(self._leaves, axes, names, strict=True)
        ]
        devices = [leaf.device for leaf in self._leaves if is_tensor(leaf)]
        self.is_checkpointing = any(device.is_checkpointing for device in devices)
        self._has_autodiff = any(device.layers for device in devices)
        self.size = self._common_length(names)
        self._drawn: dict[Key, int] | None = None

    def _common_length(self, names: Sequence[str]) -> int:
        lengths = {
            name: leaf.shape[axis]
            for leaf, axis, name in zip(self._leaves, self._axes, names, strict=True)
            if axis is not None
        }
        if not lengths:
            raise ArgumentError(
                "no argument has a batch axis",
                hint="in_axes says for each argument which axis it is",
                operation="vmap",
            )
        if len(set(lengths.values())) > 1:
            shown = ", ".join(f"{length} of {name}" for name, length in lengths.items())
            raise ShapeError(
                f"batch axes of different lengths: {shown}",
                hint="Give None in in_axes to an argument that is the same for all examples",
                operation="vmap",
            )
        return int(next(iter(lengths.values())))

    def run(self, transform: Transform) -> Any:
        """Run the function on all examples."""
        stack = (*self._stack, transform)
        with running(stack):
            values = [
                leaf
                if axis is None
                else batched(leaf, axis, stack, is_checkpointing=self.is_checkpointing)
                for leaf, axis in zip(self._leaves, self._axes, strict=True)
            ]
            return self._function(*unflatten(self._structure, values), **self._kwargs)

    def output(self, x: Tensor, axis: Any, name: str, transform: Transform) -> Tensor:
        """A result with the batch axis."""
        rank = len(x.shape) + 1
        axis = python_number(axis)
        if axis.__class__ is not int or not -rank <= axis < rank:
            raise ArgumentError(
                f"{name} has {rank} axes with that of the batch, which cannot be {axis!r}",
                hint="out_axes says where it goes",
                operation="vmap",
            )
        stack = (*self._stack, transform)
        whole = layered(x, stack)
        device = whole.device
        primitive, frame = whole.primitive, transform.frame
        below, dtype = under(device, self._stack), x.dtype
        if is_quantized(primitive):
            primitive = unbatch(primitive, frame, axis % rank, device)
            dtype = primitive.dtype
        else:
            primitive = device.backend.unbatch(primitive, frame, axis % rank, device.ops)
        result = dispatch.wrap(primitive, below.tensor_type(dtype))
        return on_device_of_caller(result, has_autodiff=self._has_autodiff)

    def words_per_example(self, generator: Key) -> int:
        """The 32-bit words that one example draws: those that the first example draws alone."""
        if not self.size:
            return 0
        if self._drawn is None:
            trace = running_trace()
            unrecorded = trace.recorder.discarding() if trace else contextlib.nullcontext()
            with unrecorded, running(self._stack), isolated() as self._drawn:
                firsts = [
                    leaf if axis is None else moveaxis(leaf, axis, 0)[0]
                    for leaf, axis in zip(self._leaves, self._axes, strict=True)
                ]
                # Other tensors, since the function may write to its arguments.
                arguments = unflatten(self._structure, firsts), self._kwargs
                args, kwargs = map_tensors(independent, arguments)
                self._function(*args, **kwargs)
        return self._drawn.get(generator, 0)

    def finish_draws(self) -> None:
        """Reserve the random numbers of all examples but the first one, as a loop would."""
        for generator, words in (self._drawn or {}).items():
            reserve(generator, words * (self.size - 1))


def _axis_of(leaf: Any, axis: Any, name: str) -> int | None:
    """The batch axis of an argument, counted from the front."""
    if axis is None:
        return None
    if not is_tensor(leaf):
        raise OperandTypeError(
            f"{name} is an object of type {type(leaf).__name__}, which has no batch axis",
            hint="Give it None in in_axes, or make it a tensor with burn.asarray",
            operation="vmap",
        )
    check_layers(leaf, name, "vmap")
    rank = len(leaf.shape)
    axis = python_number(axis)
    if axis.__class__ is not int or not -rank <= axis < rank:
        raise ArgumentError(
            f"{name} of shape {leaf.shape} has no axis {axis!r}",
            hint="in_axes says for each argument which axis is that of the batch",
            operation="vmap",
        )
    return axis % rank
