"""Random numbers: the same for the same seed, on every backend.

Each device has a generator of its own (Philox4x32-10). `seed`, or ``Device.seed``, sets its state;
without a seed it starts from the system's entropy.
"""

from __future__ import annotations

import itertools
import math
from typing import TYPE_CHECKING, Any

from burn.backend.invalid_values import InvalidValue
from burn.devices import VMAP, Device, Transform, each_layer, running, transforms, under_running
from burn.docstrings import documented_as
from burn.dtype import DType, float32, float64, int32, uint32
from burn.errors import ArgumentError, DTypeError, ShapeError
from burn.functions import calls
from burn.functions._value_checks import require
from burn.functions.common import DeviceLike, DTypeLike, dispatch
from burn.functions.elementwise import clip, erfinv, isfinite
from burn.functions.normalize import as_dtype, as_real, as_shape, find_device, rank_of
from burn.functions.quantization import numbers_of
from burn.generator import after, release, reserve
from burn.ops.arguments import as_integer
from burn.ops.arrays.random import integer_words, normal_words, uniform_words
from burn.public_calls import has_functions

if TYPE_CHECKING:
    from burn.aliases import Shape
    from burn.tensor.tensor import Tensor

__all__ = [
    "bernoulli",
    "categorical",
    "integers",
    "normal",
    "permutation",
    "seed",
    "truncated_normal",
    "uniform",
]

has_functions(__name__, prefix="random.")

_LEAST_PROBABILITY = 1e-4
"""Of the range of truncated normal numbers: beneath it too few bits tell them apart."""

_LARGEST_BELOW_1 = {float32: 1.0 - 2.0**-24, float64: 1.0 - 2.0**-53}


def seed(value: int, *, device: DeviceLike | None = None) -> None:
    """Set the state of a device's generator.

    Parameters
    ----------
    value : int
        Any integer; it is taken modulo 2**64.
    device : Device or str, optional
        The device of the generator; the default device if left out.

    Returns
    -------
    None
        The same numbers are drawn after every call with the same value.

    Raises
    ------
    ArgumentError
        Inside of a function of `burn.vmap` or `burn.checkpoint`, whose draws are reproduced.

    Examples
    --------
    >>> import burn
    >>> burn.random.seed(0, device="cpu")
    >>> first = burn.random.uniform(3, device="cpu").tolist()
    >>> burn.random.seed(0, device="cpu")
    >>> burn.random.uniform(3, device="cpu").tolist() == first
    True
    """
    find_device(device, "random.seed").seed(as_integer(value, "value", "random.seed"))


def uniform(
    shape: int | Shape = (),
    low: float = 0.0,
    high: float = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """Uniform numbers in [low, high).

    Parameters
    ----------
    shape : int or tuple of int
        Length of each axis.
    low, high : float
        Bounds of the numbers, which are finite.
    dtype : DType, optional
        A float dtype; the default one of the device if left out.
    device : Device or str, optional
        Device of the result; the default device if left out.

    Returns
    -------
    Tensor
        Independent numbers in the given shape.

    Raises
    ------
    ArgumentError
        If a bound is not finite, or `low` is above `high`.
    DTypeError
        If `dtype` is no float dtype.

    Examples
    --------
    >>> import burn
    >>> x = burn.random.uniform((2, 3), -1.0, 1.0, device="cpu")
    >>> x.shape, bool(burn.all((x >= -1) & (x < 1)))
    ((2, 3), True)
    """
    device = find_device(device, "random.uniform")
    dtype = device.settings.float_dtype if dtype is None else as_dtype(dtype, "random.uniform")
    shape = as_shape(shape, "random.uniform")
    low = as_real(low, "low", "random.uniform")
    high = as_real(high, "high", "random.uniform")
    words = uniform_words(_size(shape), dtype)
    attrs = {"shape": shape, "low": low, "high": high}
    return _draw("random_uniform", device, dtype, words, attrs)


@documented_as(uniform)
def normal(
    shape: int | Shape = (),
    mean: float = 0.0,
    std: float = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """Normal numbers with a mean and a standard deviation.

    The other parameters are those of `uniform`.

    Parameters
    ----------
    mean, std : float
        Mean and standard deviation of the distribution.

    Raises
    ------
    ArgumentError
        If the mean is not finite, or the standard deviation negative or not finite.

    Notes
    -----
    Two uniform numbers give two normal ones (G. E. P. Box and M. E. Muller, "A note on the
    generation of random normal deviates", 1958).

    Examples
    --------
    >>> import burn
    >>> burn.random.normal((2, 3), 5.0, 0.5, device="cpu").shape
    (2, 3)
    """
    device = find_device(device, "random.normal")
    dtype = device.settings.float_dtype if dtype is None else as_dtype(dtype, "random.normal")
    shape = as_shape(shape, "random.normal")
    mean = as_real(mean, "mean", "random.normal")
    std = as_real(std, "std", "random.normal")
    # 16-bit numbers are drawn in float32.
    words = normal_words(_size(shape), float32 if dtype.itemsize < float32.itemsize else dtype)
    attrs = {"shape": shape, "mean": mean, "std": std}
    return _draw("random_normal", device, dtype, words, attrs)


@documented_as(uniform)
def truncated_normal(
    shape: int | Shape = (),
    mean: float = 0.0,
    std: float = 1.0,
    low: float = -2.0,
    high: float = 2.0,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """Normal numbers with a mean and a standard deviation, of those in [low, high].

    The other parameters are those of `uniform`.

    Parameters
    ----------
    mean, std : float
        Mean and standard deviation of the distribution before it is truncated.
    low, high : float
        Bounds of the numbers, which may be infinite. They do not scale with `std`.

    Raises
    ------
    ArgumentError
        If the mean is not finite, the standard deviation not positive and finite, `low` not below
        `high`, or the probability of the range less than 0.0001.

    Notes
    -----
    The quantiles of the normal distribution at uniform numbers, by `burn.erfinv`: accurate to 5e-7
    of the deviation in float32, in which 16-bit numbers are drawn too, and to 1e-15 in float64.
    Where the resolution of the uniform numbers ends, numbers end too: at 5.4 deviations in float32,
    at 8.3 in float64.

    Examples
    --------
    >>> import burn
    >>> x = burn.random.truncated_normal((2, 3), std=0.5, low=-1.0, high=1.0, device="cpu")
    >>> x.shape, bool(burn.all(burn.abs(x) <= 1.0))
    ((2, 3), True)
    """
    operation = "random.truncated_normal"
    device = find_device(device, operation)
    dtype = device.settings.float_dtype if dtype is None else as_dtype(dtype, operation)
    mean = as_real(mean, "mean", operation, above=-math.inf, below=math.inf)
    std = as_real(std, "std", operation, above=0.0, below=math.inf)
    low, high = as_real(low, "low", operation), as_real(high, "high", operation)
    start, stop = [math.erf((number - mean) / std / math.sqrt(2.0)) for number in (low, high)]
    if not (stop - start) / 2 >= _LEAST_PROBABILITY:
        raise ArgumentError(
            f"the range from {low} to {high} for the mean {mean} and the deviation {std}",
            hint=f"The probability of the range must be at least {_LEAST_PROBABILITY:g}",
            operation=operation,
        )
    if not dtype.is_float:
        raise DTypeError(f"normal numbers are floats, not {dtype}", operation=operation)
    wide = float64 if dtype is float64 else float32
    largest = _LARGEST_BELOW_1[wide]
    start, stop = max(start, -largest), min(stop, largest)
    drawn = uniform(shape, start, stop, dtype=wide, device=device)
    quantiles = erfinv(drawn) * math.sqrt(2.0)
    return clip(quantiles * std + mean, low, high).astype(dtype)


def integers(
    shape: int | Shape = (),
    low: int = 0,
    high: int = 2,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """Uniform integers in [low, high).

    Parameters
    ----------
    shape : int or tuple of int
        Length of each axis.
    low, high : int
        Bounds of the integers.
    dtype : DType, optional
        An integer dtype; the default one of the device if left out.
    device : Device or str, optional
        Device of the result; the default device if left out.

    Returns
    -------
    Tensor
        Independent integers in the given shape.

    Raises
    ------
    ArgumentError
        If the range is empty, or does not fit the dtype.
    DTypeError
        If `dtype` is no integer dtype.

    Notes
    -----
    They are words of 32 bits times the length of the range, so that the probabilities of a range
    that does not divide 2**32 are off by less than its length over 2**32 (64 bits for ranges beyond
    2**32).

    Examples
    --------
    >>> import burn
    >>> x = burn.random.integers(100, 1, 7, device="cpu")
    >>> x.shape, bool(burn.all((x >= 1) & (x < 7)))
    ((100,), True)
    """
    device = find_device(device, "random.integers")
    dtype = device.settings.int_dtype if dtype is None else as_dtype(dtype, "random.integers")
    shape = as_shape(shape, "random.integers")
    low = as_integer(low, "low", "random.integers")
    high = as_integer(high, "high", "random.integers")
    words = integer_words(_size(shape), low, high)
    attrs = {"shape": shape, "low": low, "high": high}
    return _draw("random_integers", device, dtype, words, attrs)


def bernoulli(
    shape: int | Shape = (), probability: float = 0.5, *, device: DeviceLike | None = None
) -> Tensor:
    """Booleans that are true with a probability.

    Parameters
    ----------
    shape : int or tuple of int
        Length of each axis.
    probability : float
        The probability of True, from 0 to 1.
    device : Device or str, optional
        Device of the result; the default device if left out.

    Returns
    -------
    Tensor
        Independent bools in the given shape.

    Raises
    ------
    ArgumentError
        If the probability is not between 0 and 1.

    Examples
    --------
    >>> import burn
    >>> burn.random.bernoulli(3, 1.0, device="cpu").tolist()
    [True, True, True]
    """
    bound = as_real(probability, "probability", "random.bernoulli", least=0.0, most=1.0)
    return uniform(shape, dtype=float32, device=device) < bound


def permutation(count: int, *, device: DeviceLike | None = None) -> Tensor:
    """The integers from 0 to ``count - 1`` in random order.

    Parameters
    ----------
    count : int
        The number of integers.
    device : Device or str, optional
        Device of the result; the default device if left out.

    Returns
    -------
    Tensor, shape (count,)
        In the device's default integer dtype.

    Raises
    ------
    ArgumentError
        If `count` is negative.

    Examples
    --------
    >>> import burn
    >>> burn.sort(burn.random.permutation(4, device="cpu")).tolist()
    [0, 1, 2, 3]
    """
    device = find_device(device, "random.permutation")
    dtype = uint32 if device.supports_dtype(uint32) else int32
    length = as_integer(count, "count", "random.permutation", least=0)
    words = _draw("random_bits", device, dtype, length, {"count": length})
    # The highest bit is a sign in int32: without it the order is the same in both dtypes.
    keys = (words >> 1) & 0x7FFFFFFF
    return calls.argsort(keys, axis=0, dtype=device.settings.int_dtype)


def categorical(
    probabilities: Tensor, count: int = 1, /, *, dtype: DTypeLike | None = None
) -> Tensor:
    """Classes drawn with the probabilities in the last axis of a tensor.

    Parameters
    ----------
    probabilities : Tensor, shape (..., C)
        Weights that are not negative; they need not add up to 1.
    count : int
        Classes to draw for each row.
    dtype : DType, optional
        Integer dtype of the result; the default one of the device if left out.

    Returns
    -------
    Tensor, shape (..., count)
        Indices of the classes, from 0 to ``C - 1``.

    Raises
    ------
    DTypeError
        If the weights are no floats, or `dtype` is no integer dtype.
    OutOfRangeError
        If a weight is negative or not finite, or all weights of a row are 0; on an asynchronous
        device at the next read.
    ShapeError
        If there are no classes.

    Examples
    --------
    >>> import burn
    >>> weights = burn.asarray([0.0, 2.0, 0.0], device="cpu")
    >>> burn.random.categorical(weights, 3).tolist()
    [1, 1, 1]
    """
    rank = rank_of(probabilities, "random.categorical", "probabilities")
    if rank == 0 or probabilities.shape[-1] == 0:
        raise ShapeError(
            f"probabilities of shape {probabilities.shape} have no classes",
            hint="Classes lie along the last axis",
            operation="random.categorical",
        )
    if not probabilities.dtype.is_float:
        raise DTypeError(
            f"weights are floats, not {probabilities.dtype}",
            hint="Convert them with .astype()",
            operation="random.categorical",
        )
    count = as_integer(count, "count", "random.categorical", least=0)
    if dtype is not None:
        dtype = as_dtype(dtype, "random.categorical")
        if not dtype.is_integer:
            raise DTypeError(f"classes are integers, not {dtype}", operation="random.categorical")
    drawn = draw_classes(probabilities, count, InvalidValue.WEIGHT)
    return drawn if dtype is None else drawn.astype(dtype)


def draw_classes(probabilities: Tensor, count: int, fault_value: InvalidValue) -> Tensor:
    """Classes of weights, of which invalid ones raise the error of a value."""
    device = probabilities.device
    index_dtype = device.settings.int_dtype
    rows, classes = probabilities.shape[:-1], probabilities.shape[-1]
    probabilities = numbers_of(probabilities)
    sums = calls.cumsum(probabilities, axis=len(rows))
    upper = sums.reshape((*rows, 1, classes))
    total = upper[..., -1:]
    possible = (probabilities >= 0) & ((total > 0) & isfinite(total))[..., 0, :]
    fault = require(possible, fault_value).astype(index_dtype)
    drawn = uniform((*rows, count, 1), dtype=probabilities.dtype, device=device)
    below = (upper <= drawn * total).astype(index_dtype)
    chosen = (below.sum(axis=-1) + fault).reshape((*rows, count))
    # Rounding may reach the end; the last class with a weight is the last that can be drawn.
    last = (upper[..., 0, :] < total[..., 0, :]).astype(index_dtype).sum(axis=-1)
    return calls.minimum(chosen, last.reshape((*rows, 1)))


def _size(shape: Shape) -> int:
    """Number of elements; 0 where a length is negative, which the op refuses."""
    return 0 if shape and min(shape) < 0 else math.prod(shape)


def _draw(name: str, device: Device, dtype: DType, words: int, attrs: dict[str, Any]) -> Tensor:
    vmaps = [transform for transform in transforms() if transform.kind == VMAP]
    if vmaps:
        return _draw_for_examples(vmaps, name, device, dtype, words, attrs)
    generator = device.generator
    state = reserve(generator, words)
    try:
        return dispatch.create(name, device, dtype, seed=state.seed, offset=state.offset, **attrs)
    except BaseException:
        release(generator, state, words)  # a call that fails draws nothing
        raise


def _draw_for_examples(
    vmaps: list[Transform],
    name: str,
    device: Device,
    dtype: DType,
    words: int,
    attrs: dict[str, Any],
) -> Tensor:
    """What a loop over the examples of each running `burn.vmap` would draw, in one tensor."""
    generator = device.generator
    steps = [vmap.words_per_example(generator) for vmap in vmaps]
    sizes = [vmap.frame.size for vmap in vmaps]
    state = reserve(generator, words if all(sizes) else 0)
    with running(()):
        draws = []
        for indices in itertools.product(*map(range, sizes)):
            skipped = sum(index * step for index, step in zip(indices, steps, strict=True))
            seed, offset = after(state, skipped)
            one = dispatch.create(name, device.hardware, dtype, seed=seed, offset=offset, **attrs)
            draws.append(one.reshape((1, *one.shape)))
        if not draws:
            one = dispatch.create(name, device.hardware, dtype, seed=0, offset=0, **attrs)
            draws = [one.reshape((1, *one.shape))[:0]]
        shape = draws[0].shape[1:]
        primitive = calls.concat(draws, axis=0).reshape((*sizes, *shape)).primitive
    target = under_running(device)
    batching = [layer for layer in each_layer(target) if layer.layers[-1] == VMAP]
    for layer, vmap in zip(batching, vmaps, strict=True):
        primitive = layer.backend.wrap(primitive, vmap.frame)
    return dispatch.wrap(primitive, target.tensor_type(dtype))
