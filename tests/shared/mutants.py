"""Deliberate bugs, each in one method of a copy of burn-cpu, as data for test_kit_mutations.

A row has a name, the op or member of the backend that is changed, and a function that makes the
wrong method of the right one. The kit has to find each of them.
"""

import concurrent.futures
import time
import types
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import array_api_strict
import numpy as np

from burn.backend import ArrayBackend
from burn.device_id import DeviceId
from burn.dtype import DTypeUsage, bfloat16, float16, float64, int64
from burn.ops import REGISTRY, resolve
from burn.ops.batching import aligned_axes, leading_axes, merging
from burn.ops.index_arithmetic import narrow
from burn.tensor_data import TensorData
from burn_cpu.arithmetic import with_numbers
from burn_cpu.backend import CpuBackend


class Mutant(NamedTuple):
    """A bug.

    Attributes
    ----------
    name : str
        What is wrong.
    member : str
        The op, or other member of the backend, that is changed.
    change : callable
        Makes the wrong method of the right one.
    suite : str
        Which suite has to find it; "" for any that tries the op.
    """

    name: str
    member: str
    change: Callable[[Any], Any]
    suite: str = ""

    def backend(self) -> CpuBackend:
        """A copy of the backend with the bug."""

        class Mutated(CpuBackend):
            def name(self, device):
                return "mutant"

        result = Mutated()
        right = getattr(result, self.member, None)
        if right is None:  # made of other ops
            right = partial(REGISTRY[self.member].default, resolve(result, DeviceId(0)))
        setattr(result, self.member, self.change(right))
        return result


def writing_to_what_it_shares(right):
    def share(data, device):
        x = right(data, device)
        if x.size > 1 and x.flags.writeable:
            x[...] = x[::-1].copy()
        return x

    return share


def mirrored(axis, rank):
    """Axes counted from the wrong end."""
    return tuple(rank - 1 - item for item in axis)


def memory_order(x):
    """The elements as they lie in memory, whatever the strides say."""
    return np.array(x.ravel(order="K")).reshape(x.shape) if isinstance(x, np.ndarray) else x


def remembered(right):
    """A method that writes its results to one buffer per shape, again and again."""
    buffers = {}

    def call(x):
        result = right(x)
        buffer = buffers.setdefault((result.shape, result.dtype), np.empty_like(result))
        buffer[...] = result
        return buffer

    return call


def leaking(right):
    """A method that keeps all its results."""
    kept = []

    def call(x1, x2):
        kept.append(right(x1, x2))
        return kept[-1]

    return call


def racing(right):
    """A method that hands its operands to itself through shared memory."""
    shared = types.SimpleNamespace()

    def call(x):
        shared.x = x
        time.sleep(0.0002)  # where a kernel would run
        return right(shared.x)

    return call


def in_place(right):
    """A method that computes in the memory of its operand."""

    def call(x, **attributes):
        result = right(x, **attributes)
        if isinstance(x, np.ndarray) and result.shape == x.shape and x.flags.writeable:
            x[...] = result
        return result

    return call


def late_index(right):
    """A kernel that stays inside the tensor, and forgets to say that it had to."""

    def call(x, indices, *, axis):
        length = x.shape[axis]
        return right(x, np.clip(indices, -length, max(length - 1, 0)), axis=axis)

    return call


def labels_from_the_end(right):
    """-1 is the last class, and not what it mostly is: padding."""

    def call(x, labels, **rest):
        count = x.shape[rest.get("axis", 0)]
        counts_back = (labels < 0) & (labels >= -count)
        return right(x, np.where(counts_back, labels + count, labels), **rest)

    return call


def plain_index_error(right):
    """The right moment, and the wrong class."""

    def call(x, indices, *, axis):
        try:
            return right(x, indices, axis=axis)
        except IndexError as error:
            raise ValueError("bad index") from error

    return call


def wrapping_cast(right):
    """Floats out of range wrap around, as C leaves them."""

    def call(x, *, dtype):
        if dtype.is_integer and x.dtype.kind == "f":
            with np.errstate(all="ignore"):
                return x.astype(np.int64).astype(dtype.numpy)
        return right(x, dtype=dtype)

    return call


def nan_cast(right):
    """NaN becomes the smallest integer."""

    def call(x, *, dtype):
        result = right(x, dtype=dtype)
        if dtype.kind == "i" and x.dtype.kind == "f":
            return np.where(np.isnan(x), np.array(dtype.integer_range[0], result.dtype), result)
        return result

    return call


def unstable(right):
    """Equal elements in the opposite order, each with its value."""

    def call(x, *, axis, **attributes):
        turned = right(np.flip(x, axis), axis=axis, **attributes)
        return x.shape[axis] - 1 - turned if x.ndim and x.shape[axis] else turned

    return call


def last_tie(right):
    """Of equal elements the last."""

    def call(x, *, axis, keepdims=False, dtype):
        if not x.ndim:
            return right(x, axis=axis, keepdims=keepdims, dtype=dtype)
        found = right(np.flip(x, axis), axis=axis, keepdims=keepdims, dtype=dtype)
        return (x.shape[axis] - 1 - found).astype(found.dtype)

    return call


def ignoring_nan(right):
    """NaN counts as the smallest there is."""

    def call(x, **attributes):
        if x.dtype.kind == "f":
            x = np.where(np.isnan(x), np.array(-np.inf, x.dtype), x)
        return right(x, **attributes)

    return call


def nan_first(right):
    """Sorts NaN to the front."""

    def call(x, *, axis, **attributes):
        result = right(x, axis=axis, **attributes)
        if result.dtype.kind != "f" or not result.ndim:
            return result
        order = np.argsort(~np.isnan(result), axis=axis, kind="stable")
        return np.take_along_axis(result, order, axis)

    return call


def losing_duplicates(right):
    """A race between the elements that are added at one index: the last one wins."""
    del right

    def call(x, indices, value, *, axis):
        result = x.copy()
        old = np.take_along_axis(result, indices, axis)
        np.put_along_axis(result, indices, old + value, axis)
        return result

    return call


def vectorized(right):
    """Infinities become NaN in what fills vector registers of 64 bytes, not in the remainder."""

    def call(x, **attributes):
        result = np.array(right(x, **attributes))
        whole = result.size - result.size % max(64 // result.itemsize, 1)
        flat = result.reshape(-1)[:whole]
        flat[np.isinf(flat)] = np.nan
        return result

    return call


def unsigned_zeros(right):
    """A zero is positive wherever it comes from."""
    return lambda *operands: right(*operands) + 0


def conjugate_on_the_axis(right):
    """Real numbers are taken to lie on the other side of a branch cut."""

    def call(x):
        result = right(x)
        return np.where(x.imag == 0.0, np.conj(result), result) if x.dtype.kind == "c" else result

    return call


def lossy(right):
    """Doubles travel as singles."""

    def call(data, device):
        x = right(data, device)
        return x.astype(np.float32).astype(np.float64) if x.dtype == np.float64 else x

    return call


def narrow_sum(right):
    """Sums of 16 bits without a wider accumulator."""

    def call(x, *, axis, keepdims=False, dtype):
        if dtype not in (float16, bfloat16):
            return right(x, axis=axis, keepdims=keepdims, dtype=dtype)
        moved = np.moveaxis(x, axis, range(len(axis))).astype(dtype.numpy)
        total = np.zeros(moved.shape[len(axis) :], dtype.numpy)
        for index in np.ndindex(moved.shape[: len(axis)]):
            total = total + moved[index]
        return np.expand_dims(total, axis) if keepdims else np.asarray(total)

    return call


def saturating(right):
    """Integers stop at the ends of their range."""

    def call(x1, x2):
        result = right(x1, x2)
        if result.dtype.kind != "i":
            return result
        info = np.iinfo(result.dtype)
        exact = np.asarray(x1, object) + np.asarray(x2, object)
        return np.clip(exact, info.min, info.max).astype(result.dtype)

    return call


def talkative(right):
    """Warns whatever the user's filters are."""

    def call(x):
        warnings.warn("an infinity", RuntimeWarning, stacklevel=2)
        return right(x)

    return call


def meddling(right):
    """Sets the filters of warnings of the user's process."""

    def call(x):
        warnings.simplefilter("ignore")
        return right(x)

    return call


def threaded(right):
    """Computes in a thread, where NumPy's error state is the one that threads begin with."""

    def call(x):
        with concurrent.futures.ThreadPoolExecutor(1) as executor:
            return executor.submit(right, x).result()

    return call


def claims(dtype, usage):
    """A `dtype_usage` that says something else of one dtype."""

    def change(right):
        return lambda device, asked: usage if asked is dtype else right(device, asked)

    return change


def without_native(dtype):
    """A `native_dtype` that lacks a dtype which `dtype_usage` claims."""

    def change(right):
        backend = right.__self__
        usage = backend.dtype_usage
        backend.dtype_usage = lambda device, asked: (
            DTypeUsage.GENERAL if asked is dtype else usage(device, asked)
        )
        return lambda asked: None if asked is dtype else right(asked)

    return change


def keeping_host_memory(right):
    """A tensor in the memory of the array that it was made of."""
    del right
    return lambda data, device: data.array


def reading_memory_once(right):
    """What was read of a memory is kept for all of its parts of one shape."""
    known = {}

    def call(x):
        base = x if x.base is None else x.base
        key = (id(base), x.shape, x.strides)
        return known.setdefault(key, (base, right(x)))[1]

    return call


def telling_the_first(right):
    """An error names the index of the first one."""
    first = []

    def call(x, indices, *, axis):
        try:
            return right(x, indices, axis=axis)
        except IndexError as error:
            first.append(error)
            raise first[0] from None

    return call


def telling_once(right):
    """An index out of range is an error once; later ones are brought into the range."""
    told = []

    def call(x, indices, *, axis):
        try:
            return right(x, indices, axis=axis)
        except IndexError:
            if told:
                return late_index(right)(x, indices, axis=axis)
            told.append(None)
            raise

    return call


def keeping_operands(right):
    """A product keeps its operands for a gradient that is never asked for."""
    kept = []

    def call(x1, x2):
        kept.append((x1, x2))
        return right(x1, x2)

    return call


def growing(right):
    """A product keeps the memory that it needs beside its operands."""
    kept = []

    def call(x1, x2):
        kept.append(np.array(x1))
        return right(x1, x2)

    return call


def through_float32(right):
    """Integers are computed in float32."""

    def call(x1, x2):
        result = right(x1, x2)
        is_integer = result.dtype.kind == "i" and result.size
        return result.astype(np.float32).astype(result.dtype) if is_integer else result

    return call


def counting_in_float32(right):
    """A count in float32, which stays at 2**24."""

    def call(x, *, axis, keepdims=False, dtype):
        result = right(x, axis=axis, keepdims=keepdims, dtype=dtype)
        is_count = x.size > 1 << 24 and result.dtype.kind == "i"
        return np.minimum(result, np.asarray(1 << 24, result.dtype)) if is_count else result

    return call


def beginning_anew(right):
    """A counter of blocks that has 16 bits."""

    def call(*, count, **rest):
        period = 4 * 65_536
        return np.resize(right(count=min(count, period), **rest), count)

    return call


def exponents_of_float32(right):
    """Doubles whose exponential float32 cannot hold become infinite, or 0."""

    def call(x):
        result = right(x)
        if x.dtype != np.float64:
            return result
        with np.errstate(all="ignore"):
            narrow = np.exp(x.astype(np.float32)).astype(np.float64)
        return np.where(np.abs(x) > 88.8, narrow, result)

    return call


def low_bits_of_exponents(right):
    """Of the exponents of integers the low five bits count."""

    def call(x1, x2):
        is_integer = getattr(x2, "dtype", np.dtype(float)).kind in "iu"
        return right(x1, np.where(x2 > 31, x2 & 31, x2).astype(x2.dtype) if is_integer else x2)

    return call


def product_of_int32(right):
    """Products of 64-bit integers in 32 bits."""

    def call(x, *, dtype, **rest):
        result = right(x, dtype=dtype, **rest)
        return result.astype(np.int32).astype(np.int64) if dtype is int64 else result

    return call


def compared_as_floats(right):
    """Integers are compared in float64."""

    def as_float(x):
        return x.astype(np.float64) if getattr(x, "dtype", np.dtype(float)).kind in "iu" else x

    return lambda x1, x2: right(as_float(x1), as_float(x2))


def second_of_four(right):
    """A sum over the second of four axes without its last element."""

    def call(x, *, axis, **rest):
        if x.ndim == 4 and axis == (1,):
            x = x.copy()
            x[:, -1:] = 0
        return right(x, axis=axis, **rest)

    return call


def in_a_grid(right):
    """No more matrices than a grid of a GPU has along an axis."""

    def call(x1, x2):
        result = np.array(right(x1, x2))
        if result.ndim > 2:
            result[65_535:] = 0
        return result

    return call


MUTANTS = [
    # Infinities and zeros.
    Mutant("infinities in vector registers", "gelu", vectorized, "values"),
    Mutant("zeros without a sign", "remainder", unsigned_zeros, "values"),
    Mutant("the other side of a branch cut", "acos", conjugate_on_the_axis, "special_cases"),
    # Axes, indices, strides.
    Mutant("axes counted from the end", "sum", lambda right: lambda x, *, axis, **rest: right(
        x, axis=mirrored(axis, x.ndim), **rest)),
    Mutant("a slice starts one too early", "slice", lambda right: lambda x, *, slices: right(
        x, slices=tuple((max(start - 1, 0), length, step) if step > 0 else (start, length, step)
                        for start, length, step in slices))),
    Mutant("an assignment misses its last element", "slice_assign",
           lambda right: lambda x, value, *, slices: right(
               right(x, value, slices=slices), x[tuple(
                   slice(start + (length - 1) * step, start + (length - 1) * step + 1)
                   if length else slice(0, 0) for start, length, step in slices)],
               slices=tuple((start + (length - 1) * step, min(length, 1), 1)
                            for start, length, step in slices))),
    Mutant("the inverse permutation", "permute", lambda right: lambda x, *, axes: right(
        x, axes=tuple(int(axis) for axis in np.argsort(axes)))),
    Mutant("reshape by columns", "reshape", lambda right: lambda x, *, shape: (
        x.reshape(shape, order="F"))),
    Mutant("strides are ignored", "exp", lambda right: lambda x: right(memory_order(x))),
    Mutant("strides of 0 are ignored", "add", lambda right: lambda x1, x2: right(
        memory_order(x1), memory_order(x2))),
    Mutant("joined in the opposite order", "concat", lambda right: lambda tensors, *, axis: right(
        tensors[::-1], axis=axis)),
    Mutant("counting starts at 1", "arange", lambda right: lambda *, start, step, **rest: right(
        start=start + step, step=step, **rest)),
    Mutant("a negative index counts from the wrong end", "gather",
           lambda right: lambda x, indices, *, axis: right(
               x, np.where(indices < 0, -indices - 1, indices), axis=axis)),
    Mutant("keepdims is forgotten", "max", lambda right: lambda x, *, axis, keepdims=False: right(
        x, axis=axis)),
    Mutant("a running sum without the element itself", "cumsum",
           lambda right: lambda x, *, axis: right(x, axis=axis) - x),
    # Operands.
    Mutant("operands exchanged", "subtract", lambda right: lambda x1, x2: right(x2, x1)),
    Mutant("choices exchanged", "where", lambda right: lambda condition, x1, x2: right(
        condition, x2, x1)),
    Mutant("an operand is written to", "negative", in_place),
    Mutant("sorting sorts the operand too", "sort", in_place),
    Mutant("a buffer that is used again", "tanh", remembered),
    Mutant("results are never freed", "multiply", leaking, "memory"),
    Mutant("operands meet in shared memory", "sqrt", racing, "threads"),
    # Dtypes.
    Mutant("float16 becomes float32", "log", lambda right: lambda x: right(
        x.astype(np.float32) if x.dtype == np.float16 else x)),
    Mutant("the dtype of full is forgotten", "full", lambda right: lambda *, dtype, **rest: right(
        dtype=float64 if dtype.is_float else dtype, **rest)),
    Mutant("a cast wraps around", "cast", wrapping_cast),
    Mutant("a cast makes a number of NaN", "cast", nan_cast),
    Mutant("integers saturate", "add", saturating),
    Mutant("sums of 16 bits are not widened", "sum", narrow_sum),
    Mutant("a dtype is claimed that is not there", "native_dtype", without_native(bfloat16),
           "contract"),
    Mutant("arithmetic is claimed without storage", "dtype_usage",
           claims(float16, DTypeUsage.ARITHMETIC), "contract"),
    Mutant("a dtype is denied that the probe promised", "dtype_usage",
           claims(float64, DTypeUsage.NONE), "dtypes"),
    Mutant("float64 is stored as float32", "from_data", lossy, "dtypes"),
    # Special values.
    Mutant("a maximum loses NaN", "maximum", lambda right: with_numbers(np.fmax)),
    Mutant("a reduction loses NaN", "max", ignoring_nan),
    Mutant("NaN equals NaN", "equal", lambda right: lambda x1, x2: right(x1, x2) | (
        np.not_equal(x1, x1) & np.not_equal(x2, x2))),
    Mutant("the sign of NaN is 0", "sign", lambda right: lambda x: np.where(
        np.not_equal(x, x), np.zeros_like(x), right(x))),
    Mutant("0 has no sign", "negative", lambda right: lambda x: (
        np.zeros((), x.dtype) - x if x.dtype.kind in "fV" else right(x))),
    Mutant("division by zero gives -1", "floor_divide", lambda right: lambda x1, x2: np.where(
        np.equal(x2, 0) & (np.asarray(right(x1, x2)).dtype.kind in "iu"),
        np.asarray(-1).astype(np.asarray(right(x1, x2)).dtype), right(x1, x2))),
    Mutant("half is rounded up", "round", lambda right: lambda x: (
        np.copysign(np.floor(x + x.dtype.type(0.5)), x) if x.dtype.kind in "fV" else right(x))),
    Mutant("the remainder has the sign of the dividend", "remainder",
           lambda right: with_numbers(np.fmod)),
    Mutant("a power with a negative exponent is 0", "pow", lambda right: lambda x1, x2: (
        np.where(np.less(x2, 0), right(x1, x2) * 0, right(x1, x2))
        if getattr(x2, "dtype", np.dtype(float)).kind == "i" else right(x1, x2))),
    Mutant("the product of nothing is 0", "prod", lambda right: lambda x, *, axis, **rest: (
        right(x, axis=axis, **rest) * (0 not in x.shape))),
    # Order.
    Mutant("of equal elements the last", "argmax", last_tie),
    Mutant("argmax passes over NaN", "argmax", ignoring_nan),
    Mutant("NaN sorted to the front", "sort", nan_first),
    Mutant("an unstable sort", "argsort", unstable),
    Mutant("only one of two sums at an index", "scatter_add", losing_duplicates),
    # Gradients, by ops that are gradients.
    Mutant("a gradient with the wrong sign", "relu_grad", lambda right: lambda output, g: -right(
        output, g)),
    Mutant("a gradient of the other form", "gelu_grad", lambda right: (
        lambda x, g, *, approximate="none": right(
            x, g, approximate="none" if approximate == "tanh" else "tanh"))),
    # Modules.
    Mutant("a kernel turned around", "conv", lambda right: lambda x, weight, bias, **rest: right(
        x, np.ascontiguousarray(weight[..., ::-1]), bias, **rest)),
    Mutant("the mask of attention inverted", "attention",
           lambda right: lambda query, key, value, mask, bias, **rest: right(
               query, key, value, None if mask is None else ~mask, bias, **rest)),
    Mutant("a mean that counts the padding", "avg_pool", lambda right: (
        lambda x, *, count_include_pad=True, **rest: right(x, count_include_pad=True, **rest))),
    # Random numbers.
    Mutant("the seed's numbers begin one block late", "random_uniform",
           lambda right: lambda *, offset, **rest: right(offset=offset + 1, **rest)),
    Mutant("bits of the wrong key", "random_bits",
           lambda right: lambda *, seed, **rest: right(seed=seed ^ 1, **rest)),
    # Errors, settings, memory of others.
    Mutant("an index out of range is brought into it", "gather", late_index),
    Mutant("an index out of range is another error", "gather", plain_index_error, "errors"),
    Mutant("labels count from the end", "cross_entropy", labels_from_the_end, "errors"),
    Mutant("rows count from the end", "embedding", labels_from_the_end, "errors"),
    Mutant("no memory is no error of memory", "is_out_of_memory",
           lambda right: lambda error: False, "failures"),
    Mutant("warns of infinities", "log1p", talkative),
    Mutant("changes the filters of warnings", "expm1", meddling),
    Mutant("has NumPy warn in another thread", "log1p", threaded, "silence"),
    Mutant("shares the memory it was made of", "from_data", keeping_host_memory, "creation"),
    Mutant("reads come from the past", "to_data", lambda right: lambda x: TensorData(
        np.asarray(right(x).array).copy() if x.ndim != 2 else np.zeros_like(right(x).array)),
        "transfers"),
    Mutant("copies what it should share", "share", lambda right: lambda data, device: np.array(
        right(data, device)), "interchange"),
    Mutant("writes to what it shares", "share", writing_to_what_it_shares, "interchange"),
    Mutant("shares what is reversed the wrong way", "share", lambda right: lambda data, device: (
        np.lib.stride_tricks.as_strided(data.array, data.shape, [abs(step) for step in
                                                                data.array.strides])
        if min(data.array.strides, default=0) >= 0 else np.ascontiguousarray(data.array[::-1])),
        "interchange"),
    Mutant("says that a primitive is elsewhere", "device_of", lambda right: lambda x: (
        DeviceId(0, 1) if right(x) else None), "interchange"),
    Mutant("takes everything for a primitive", "device_of", lambda right: lambda x: DeviceId(0, 0),
           "interchange"),
    Mutant("exports no copies", "to_dlpack", lambda right: (
        lambda x, *, max_version=None, **rest: right(x, max_version=max_version, copy=False)),
        "interchange"),
    Mutant("exports the bits of bfloat16 as integers", "to_dlpack", lambda right: (
        lambda x, **rest: right(x.view(np.uint16) if x.dtype == bfloat16.numpy else x, **rest)),
        "interchange"),
    Mutant("calls its memory by another device's name", "dlpack_device", lambda right: (
        lambda device: (1, 7)), "interchange"),
    Mutant("writes to memory that others see", "can_write", lambda right: (
        lambda x, views: all(view is x or view.base is x for view in views)), "views"),
    Mutant("writes to a tensor whose views are copies", "can_write", lambda right: (
        lambda x, views: any(view is not x and view.base is not x for view in views)), "views"),
    Mutant("does not write in place", "write_slice", lambda right: (
        lambda x, value, *, slices: None), "views"),
    # Counters, lengths, and what comes again.
    Mutant("several axes lose NaN", "max", lambda right: lambda x, *, axis, **rest: (
        ignoring_nan(right) if len(axis) > 1 else right)(x, axis=axis, **rest), "values"),
    Mutant("random blocks counted in 16 bits", "random_bits", beginning_anew, "long_axes"),
    Mutant("a position of 16 bits", "argmax", lambda right: lambda x, **rest: (
        right(x, **rest) % 65_536), "long_axes"),
    Mutant("indices of 16 bits", "gather", lambda right: lambda x, indices, *, axis: right(
        x, np.where(np.abs(indices) < 65_536, indices, 65_535), axis=axis), "long_axes"),
    Mutant("an order of 16 bits", "argsort", lambda right: lambda x, **rest: (
        right(x, **rest) % 65_536), "long_axes"),
    Mutant("a count in float32", "sum", counting_in_float32, "long_axes"),
    Mutant("numbers counted in float32", "arange", lambda right: lambda *, start, step, **rest: (
        right(start=float(np.float32(start)), step=step, **rest)), "long_axes"),
    Mutant("integers multiplied in float32", "multiply", through_float32, "long_axes"),
    Mutant("as many matrices as a grid has", "matmul", in_a_grid, "long_axes"),
    Mutant("a part reads as the one before", "to_data", reading_memory_once, "transfers"),
    Mutant("the index of the first error is told again", "gather", telling_the_first, "failures"),
    Mutant("an index out of range is an error once", "gather", telling_once, "failures"),
    Mutant("a product keeps its operands", "matmul", keeping_operands, "memory"),
    Mutant("a product keeps its memory", "matmul", growing, "memory"),
]  # fmt: skip


SHOWN_BY_FEW = [
    Mutant("a softmax that overflows", "softmax", lambda right: lambda x, *, axis: (
        np.exp(x) / np.exp(x).sum(axis=axis, keepdims=True)).astype(x.dtype)),
    Mutant("exponents of float32 in float64", "exp", exponents_of_float32),
    Mutant("five bits of an exponent", "pow", low_bits_of_exponents),
    Mutant("a product of 64 bits in 32", "prod", product_of_int32),
    Mutant("integers compared as floats", "less", compared_as_floats),
    Mutant("integers equal as floats", "equal", compared_as_floats),
    Mutant("three axes lose NaN", "max", lambda right: lambda x, *, axis, **rest: (
        ignoring_nan(right) if len(axis) > 2 else right)(x, axis=axis, **rest)),
    Mutant("the second of four axes is summed in part", "sum", second_of_four),
]  # fmt: skip
"""Bugs that few samples show, which a run of few shapes keeps."""


WRONG_RULES = {
    "an axis of the batch": ("softmax", lambda ops, batch, x, *, axis: ops.softmax(x, axis=axis)),
    "examples exchanged": ("exp", lambda ops, batch, x: ops.flip(ops.exp(x), axes=(0,))),
    "the first example for all": ("cumsum", lambda ops, batch, x, *, axis: ops.expand(
        narrow(ops, ops.cumsum(x, axis=axis + 1), 0, 0, 1), shape=tuple(x.shape))),
    "joined in the opposite order": ("concat", lambda ops, batch, tensors, *, axis: leading_axes(
        ops, batch._replace(is_batched=(batch.is_batched[0][::-1],)), tensors[::-1], axis=axis)),
    "the inverse permutation": ("permute", lambda ops, batch, x, *, axes: ops.permute(
        x, axes=(0, *[axes.index(axis) + 1 for axis in range(len(axes))]))),
    "weights of which each example has its own": ("linear", aligned_axes),
    "statistics of all examples": ("batch_norm_training", lambda ops, batch, *rest, epsilon: [
        ops.expand(tensor, shape=(batch.size, *tensor.shape)) if index else tensor
        for index, tensor in enumerate(merging(x=0)(ops, batch, *rest, epsilon=epsilon))]),
    "no rule, and no decomposition": ("gather", None),
}  # fmt: skip
"""Wrong batching rules: what is wrong, the op, and the rule."""


class TwoDevices(ArrayBackend):
    """A library with two devices, which refuses to compute with arrays of both."""

    def __init__(self):
        super().__init__(array_api_strict)
        self.devices = [array_api_strict.Device(name) for name in ("CPU_DEVICE", "device1")]

    def name(self, device):
        return "mutant"

    def device_count(self, type_id):
        return 2 if type_id == 0 else 0

    def native_dtype(self, dtype):
        return None if dtype.is_complex else super().native_dtype(dtype)

    def native_device(self, device):
        return self.devices[device.index_id]

    def to_data(self, x):
        return super().to_data(x.to_device(self.devices[0]))

    def quiet(self):
        return np.errstate(all="ignore")


class UploadsToTheFirst(TwoDevices):
    def from_data(self, data, device):
        return super().from_data(data, DeviceId(0, 0))


class FillsOnTheFirst(TwoDevices):
    def full(self, *, device, **attributes):
        return super().full(device=DeviceId(0, 0), **attributes)


class CountsOnTheFirst(TwoDevices):
    def arange(self, *, device, **attributes):
        return super().arange(device=DeviceId(0, 0), **attributes)


class CountsOneDevice(TwoDevices):
    def device_count(self, type_id):
        return 1 if type_id == 0 else 0


RELAXED = Mutant(
    "a program rounds less often than its operations",
    "compile",
    lambda right: lambda graph, device: right(replace(graph, relaxed=True), device),
    "rounding",
)


DEVICE_MUTANTS = [UploadsToTheFirst, FillsOnTheFirst, CountsOnTheFirst, CountsOneDevice]
"""Bugs that show on a second device alone."""
