"""Random numbers: the same for the same seed, on every backend.

Each device has a generator of its own (Philox4x32-10). `seed`, or ``Device.seed``, starts it anew;
unseeded, it starts from the system's entropy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from burn.backend.refusal import Refusal
from burn.devices import Device
from burn.dtype import DType, float32, int32, uint32
from burn.errors import DTypeError, ShapeError
from burn.functions.common import DeviceLike, DTypeLike, dispatch
from burn.functions.elementwise import isfinite
from burn.functions.normalize import as_shape, find_device, rank_of
from burn.functions.value_checks import require
from burn.generator import release, reserve
from burn.ops.arguments import as_integer, real_number
from burn.ops.random import integer_words, normal_words, uniform_words
from burn.ops.shapes import size

if TYPE_CHECKING:
    from burn.aliases import Shape
    from burn.tensor.tensor import Tensor

__all__ = ["bernoulli", "categorical", "integers", "normal", "permutation", "seed", "uniform"]


def seed(value: int, *, device: DeviceLike | None = None) -> None:
    """Start the generator of a device anew.

    Parameters
    ----------
    value : int
        Any integer; it is taken modulo 2**64.
    device : Device or str, optional
        Which generator; that of the default device if left out.
    """
    find_device(device).seed(as_integer(value, "value", "seed"))


def uniform(
    shape: int | Shape = (),
    low: float = 0.0,
    high: float = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """Uniform numbers in [low, high).

    Examples
    --------
    >>> import burn
    >>> burn.random.seed(0, device="cpu")
    >>> burn.random.uniform(3, device="cpu").shape
    (3,)
    """
    where = find_device(device)
    wanted = where.settings.float_dtype if dtype is None else DType.of(dtype)
    shape = as_shape(shape)
    bounds = {
        "low": real_number(low, "low", "random.uniform"),
        "high": real_number(high, "high", "random.uniform"),
    }
    words = uniform_words(_size(shape), wanted)
    return _draw("random_uniform", where, wanted, words, shape=shape, **bounds)


def normal(
    shape: int | Shape = (),
    mean: float = 0.0,
    std: float = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """Normal numbers with a mean and a standard deviation."""
    where = find_device(device)
    wanted = where.settings.float_dtype if dtype is None else DType.of(dtype)
    shape = as_shape(shape)
    moments = {
        "mean": real_number(mean, "mean", "random.normal"),
        "std": real_number(std, "std", "random.normal"),
    }
    words = normal_words(_size(shape), float32 if wanted.itemsize < 4 else wanted)
    return _draw("random_normal", where, wanted, words, shape=shape, **moments)


def integers(
    shape: int | Shape = (),
    low: int = 0,
    high: int = 2,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """Uniform integers in [low, high).

    They are words of 32 bits times the length of the range, so that a range that does not divide
    2**32 is off by less than its length over 2**32 (64 bits for ranges beyond 2**32).
    """
    where = find_device(device)
    wanted = where.settings.int_dtype if dtype is None else DType.of(dtype)
    shape = as_shape(shape)
    low = as_integer(low, "low", "random.integers")
    high = as_integer(high, "high", "random.integers")
    words = integer_words(_size(shape), low, high)
    return _draw("random_integers", where, wanted, words, shape=shape, low=low, high=high)


def bernoulli(
    shape: int | Shape = (), probability: float = 0.5, *, device: DeviceLike | None = None
) -> Tensor:
    """Booleans that are true with a probability."""
    share = real_number(probability, "probability", "random.bernoulli", least=0.0, most=1.0)
    return uniform(shape, dtype=float32, device=device) < share


def permutation(count: int, *, device: DeviceLike | None = None) -> Tensor:
    """The integers from 0 to ``count - 1`` in random order, in the default integer dtype."""
    where = find_device(device)
    dtype = uint32 if where.supports_dtype(uint32) else int32
    length = as_integer(count, "count", "random.permutation", least=0)
    words = _draw("random_bits", where, dtype, length, count=length)
    # The highest bit is a sign in int32: without it the order is the same in both dtypes.
    keys = (words >> 1) & 0x7FFFFFFF
    return dispatch.execute(  # type: ignore[no-any-return]  # one output
        "argsort", keys, axis=0, dtype=where.settings.int_dtype
    )


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
        Integer dtype of the result; the device's default.

    Returns
    -------
    Tensor, shape (..., count)

    Raises
    ------
    OutOfRangeError
        If a weight is negative or not finite, or all weights of a row are 0; on an asynchronous
        device at the next read.

    Examples
    --------
    >>> import burn
    >>> weights = burn.asarray([0.0, 2.0, 0.0], device="cpu")
    >>> burn.random.categorical(weights, 3).tolist()
    [1, 1, 1]
    """
    if rank_of(probabilities, "random.categorical") == 0 or probabilities.shape[-1] == 0:
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
    wanted = None if dtype is None else DType.of(dtype)
    if wanted is not None and not wanted.is_integer:
        raise DTypeError(f"classes are integers, not {wanted}", operation="random.categorical")
    device = probabilities.device
    rows, classes = probabilities.shape[:-1], probabilities.shape[-1]
    upper = dispatch.execute("cumsum", probabilities, axis=len(rows)).reshape((*rows, 1, classes))
    total = upper[..., -1:]
    possible = (probabilities >= 0) & ((total > 0) & isfinite(total))[..., 0, :]
    fault = require(possible, Refusal.WEIGHT).astype(device.settings.int_dtype)
    drawn = uniform((*rows, count, 1), dtype=probabilities.dtype, device=device)
    below = (upper <= drawn * total).astype(device.settings.int_dtype)
    place = below.sum(axis=-1) + fault
    # Rounding may reach the end; the last class with a weight is the last that can be drawn.
    last = (upper[..., 0, :] < total[..., 0, :]).astype(place.dtype).sum(axis=-1)
    chosen = place.reshape((*rows, count))
    bounded: Tensor = dispatch.execute("minimum", chosen, last.reshape((*rows, 1)))
    return bounded if wanted is None else bounded.astype(wanted)


def _size(shape: Shape) -> int:
    return size([max(length, 0) for length in shape])


def _draw(name: str, device: Device, dtype: DType, words: int, **attrs: Any) -> Tensor:
    state = reserve(device.generator, words)
    try:
        return dispatch.create(name, device, dtype, seed=state.seed, offset=state.offset, **attrs)
    except BaseException:
        release(device.generator, state, words)  # a call that fails draws nothing
        raise
