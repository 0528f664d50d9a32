"""Deliberate bugs where kernels change their algorithm: at a rank, a size, a stride, a value.

Rows as in `mutants`, for test_kit_mutations. Most are of one sort: a method that is right, but for
operands that fulfil a condition.
"""

import math
import threading
import time
from functools import partial

import numpy as np

from burn.dtype import int64
from burn.tensor_data import TensorData
from mutants import Mutant


def where(condition, wrong):
    """A method that is wrong for the calls that fulfil a condition."""

    def change(right):
        def call(*operands, **attributes):
            if condition(*operands, **attributes):
                return wrong(right, *operands, **attributes)
            return right(*operands, **attributes)

        return call

    return change


def last_element(right, *operands, **attributes):
    """The last element is another one."""
    result = right(*operands, **attributes)
    is_tuple = isinstance(result, tuple)
    first = np.array(result[0] if is_tuple else result, order="C")
    flat = first.reshape(-1)
    if flat.size:
        flat[-1] = ~flat[-1] if flat.dtype.kind == "b" else flat[-1] + np.ones((), flat.dtype)
    return (first, *result[1:]) if is_tuple else first


def rank(least):
    """Tensors of so many axes."""
    return where(lambda *operands, **_: max(map(np.ndim, operands)) >= least, last_element)


def broadcast(least):
    """Operands of different shapes that have so many axes together."""

    def is_broadcast(*operands):
        shapes = {np.shape(operand) for operand in operands if np.ndim(operand)}
        return max(map(len, shapes), default=0) >= least and len(shapes) > 1

    return where(is_broadcast, last_element)


def whole_blocks(length, right):
    """A reduction over an axis that drops what exceeds whole blocks."""

    def call(x, *, axis, **attributes):
        axes = (axis,) if isinstance(axis, int) else axis
        if len(axes) == 1 and x.ndim and x.shape[axes[0]] > length:
            x = np.take(x, range(x.shape[axes[0]] // length * length), axes[0])
        return right(x, axis=axis, **attributes)

    return call


def blocks(length):
    return partial(whole_blocks, length)


def longer(length):
    """Wrong along axes beyond a length."""
    return where(
        lambda x, *_, axis=-1, **__: np.ndim(x) > 0 and x.shape[axis] > length, last_element
    )


def flushed(x):
    """Without subnormal numbers."""
    if isinstance(x, np.ndarray) and x.dtype in (np.float32, np.float64):
        return np.where(np.abs(x) < np.finfo(x.dtype).tiny, np.zeros((), x.dtype), x)
    return x


def flushing(right):
    return lambda *operands, **attributes: right(*map(flushed, operands), **attributes)


def from_the_beginning(right):
    """Without the offset of an operand in its memory."""

    def call(x, **attributes):
        whole = x.base if isinstance(x, np.ndarray) else None
        if whole is not None and x.flags.c_contiguous and whole.flags.c_contiguous:
            x = whole.reshape(-1)[: x.size].reshape(x.shape)
        return right(x, **attributes)

    return call


def packed_rows(right):
    """Rows are taken to follow one another, although they are part of longer ones."""

    def call(x, *rest, **attributes):
        row = x.shape[-1] * x.itemsize if isinstance(x, np.ndarray) and x.ndim == 2 else 0
        if row and x.strides[1] == x.itemsize and x.strides[0] > row:
            x = np.lib.stride_tricks.as_strided(x, x.shape, (row, x.itemsize))
        return right(x, *rest, **attributes)

    return call


def with_short_products(condition):
    """Products of numbers that are rounded to 11 bits before."""

    def short(x):
        return x.astype(np.float16).astype(x.dtype)

    return where(
        lambda x1, x2, *_, **__: x1.dtype == np.float32 and condition(x1, x2),
        lambda right, x1, x2, *rest, **attributes: right(short(x1), short(x2), *rest, **attributes),
    )


def short_indices(right):
    """Indices of 32 bits."""
    return lambda x, indices, *rest, **attributes: right(
        x, indices.astype(np.int32), *rest, **attributes
    )


def unchecked_after(count):
    """No index is looked at where there are many."""

    def change(right):
        def call(x, indices, *, axis):
            length = x.shape[axis]
            if indices.size > count and length:
                indices = np.clip(indices, -length, length - 1)
            return right(x, indices, axis=axis)

        return call

    return change


def last_tie_after(length):
    """Of equal elements the last, where blocks are joined."""

    def change(right):
        def call(x, *, axis, **attributes):
            if not x.ndim or x.shape[axis] <= length:
                return right(x, axis=axis, **attributes)
            found = right(np.flip(x, axis), axis=axis, **attributes)
            return (x.shape[axis] - 1 - found).astype(found.dtype)

        return call

    return change


def read_late(right):
    """An upload that a thread finishes."""

    def call(data, device):
        x = right(data, device)
        if x.size > 8 and x.flags.writeable:
            threading.Thread(target=lambda: (time.sleep(2e-4), np.copyto(x, data.array))).start()
        return x

    return call


def sometimes_shared(right):
    """An upload of aligned memory that is no copy."""

    def call(data, device):
        x = data.array
        aligned = x.ctypes.data % 64 == 0 and x.flags.c_contiguous
        return x[...] if x.size > 8 and aligned else right(data, device)

    return call


def shared_buffer(right):
    """Reads of one shape come in the same memory."""
    buffers = {}

    def call(x):
        values = right(x).array
        buffer = buffers.setdefault((values.shape, values.dtype), np.empty_like(values))
        buffer[...] = values
        return TensorData(buffer)

    return call


def aligned_alone(right):
    """An upload that reads memory in units of its elements."""

    def call(data, device):
        x = right(data, device)
        if data.array.ctypes.data % data.array.itemsize:
            x = np.roll(x, 1)
        return x

    return call


def cut_off(right, *, bits, **attributes):
    """A counter of so many bits."""
    return right(**{**attributes, "offset": attributes["offset"] % (1 << bits)})


def naive_difference(right):
    """``exp(x) - 1`` as it stands there."""
    return lambda x: np.exp(x) - np.ones((), x.dtype) if x.dtype.kind == "f" else right(x)


def turned(quotient, right):
    """The argument of a wave reduced by a short pi."""

    def call(x):
        if x.dtype != np.float32:
            return right(x)
        with np.errstate(all="ignore"):
            return np.where(np.abs(x) > 8000, right(x % np.float32(quotient)), right(x))

    return call


def short_on_the_way(right):
    """Float16 added up in float16."""

    def call(x, *, axis, **attributes):
        result = right(x, axis=axis, **attributes)
        if x.dtype == np.float16 and x.size:
            sums = np.cumsum(np.abs(x.astype(np.float32)))
            return np.full_like(result, np.inf) if sums[-1] > 65504 else result
        return result

    return call


def numbers_as_floats(right):
    """Python's integers travel as doubles."""
    return lambda x1, x2: right(x1, int(float(x2)) if type(x2) is int else x2)


def counted_in_floats(right):
    """Integers counted in doubles."""

    def call(*, start, step, length, dtype, **rest):
        if dtype is not int64:
            return right(start=start, step=step, length=length, dtype=dtype, **rest)
        return (float(start) + float(step) * np.arange(length)).astype(np.int64)

    return call


def of_squares(right):
    """The mean of squares less the square of the mean."""

    def call(x, *, axis, keepdims=False, correction=0.0):
        count = math.prod(x.shape[item] for item in axis)
        if x.dtype != np.float32 or count <= correction:
            return right(x, axis=axis, keepdims=keepdims, correction=correction)
        mean, squares = (np.mean(item, axis=axis, keepdims=keepdims) for item in (x, x * x))
        return ((squares - mean**2) * (count / (count - correction))).astype(x.dtype)

    return call


def either_padding(numbers):
    return any(before != after for before, after in numbers["padding"])


KERNEL_MUTANTS = [
    # Ranks, and axes that are no neighbours.
    Mutant("axes exchanged from rank 5 on", "permute", where(
        lambda x, *, axes: len(axes) >= 5,
        lambda right, x, *, axes: right(x, axes=tuple(map(int, np.argsort(axes)))))),
    Mutant("six axes", "permute", rank(6)),
    Mutant("two axes with one between them", "sum", where(
        lambda x, *, axis, **_: len(axis) == 2 and abs(axis[0] - axis[1]) == 2, last_element)),
    Mutant("three axes", "max", where(lambda x, *, axis, **_: len(axis) == 3, last_element)),
    Mutant("broadcasting of rank 5", "add", broadcast(5)),
    Mutant("broadcasting of rank 4", "where", broadcast(4)),
    Mutant("expanded to rank 5", "expand", where(
        lambda x, *, shape: len(shape) >= 5, last_element)),
    Mutant("rank 4 padded", "pad", rank(4)),
    Mutant("rank 4 backwards", "flip", rank(4)),
    Mutant("the second of four axes", "softmax", where(
        lambda x, *, axis: x.ndim == 4 and axis == 1, last_element)),
    Mutant("rank 6 selected from", "select", rank(6)),
    # Strides and offsets.
    Mutant("steps over 4", "slice", where(lambda x, *, slices: any(
        abs(step) > 4 and length > 1 for _, length, step in slices), last_element)),
    Mutant("steps over 100", "slice", where(lambda x, *, slices: any(
        abs(step) > 100 and length > 1 for _, length, step in slices), last_element)),
    Mutant("writes with steps over 4", "slice_assign", where(lambda x, value, *, slices: any(
        abs(step) > 4 and length > 1 for _, length, step in slices), last_element)),
    Mutant("an offset is ignored", "exp", from_the_beginning),
    Mutant("rows of a part", "tanh", packed_rows),
    Mutant("rows of a part in a product", "matmul", packed_rows),
    Mutant("unaligned memory", "from_data", aligned_alone, "creation"),
    Mutant("more tensors than arguments", "concat", where(
        lambda tensors, *, axis: len(tensors) > 32, last_element)),
    # Lengths.
    Mutant("whole blocks of 1024 summed up", "sum", blocks(1024)),
    Mutant("whole registers of 32", "max", blocks(32)),
    Mutant("whole blocks of 256", "argmin", blocks(256)),
    Mutant("whole words of 64", "any", blocks(64)),
    Mutant("sums of 65,536", "sum", blocks(65536)),
    Mutant("65,536 rows", "softmax", where(
        lambda x, *, axis: x.ndim == 2 and x.shape[0] > 65535, last_element)),
    Mutant("65,536 matrices", "matmul", where(
        lambda x1, x2: x1.ndim == 3 and len(x1) > 65535, last_element)),
    Mutant("scans over 256", "cummax", longer(256)),
    Mutant("rows over 1024", "layer_norm", longer(1024)),
    Mutant("the remainder of a tile", "permute", where(
        lambda x, *, axes: axes == (1, 0) and min(x.shape) > 32, last_element)),
    Mutant("unstable over 2048", "argsort", last_tie_after(2048)),
    Mutant("ties of two blocks", "argmax", last_tie_after(256)),
    Mutant("64 columns in short numbers", "matmul", with_short_products(
        lambda x1, x2: min(*x1.shape[-2:], x2.shape[-1]) >= 64)),
    Mutant("sums of 1000 in short numbers", "matmul", with_short_products(
        lambda x1, x2: x1.shape[-1] >= 1000)),
    Mutant("32 channels in short numbers", "conv", with_short_products(
        lambda x, weight: x.shape[1] >= 32)),
    Mutant("64 features of a head", "attention", where(
        lambda query, *_, **__: query.shape[-1] >= 64, last_element)),
    Mutant("transforms of prime length", "rfft", where(
        lambda x, *, axis, n: n > 16 and all(n % prime for prime in (2, 3, 5)), last_element)),
    # Windows.
    Mutant("a dilation of groups in a gradient", "conv_weight_grad", where(
        lambda *_, **numbers: numbers["groups"] > 1 and max(numbers["dilation"]) > 1,
        last_element)),
    Mutant("one-sided padding with a stride in a gradient", "conv_weight_grad", where(
        lambda *_, **numbers: max(numbers["stride"]) > 1 and either_padding(numbers),
        last_element)),
    Mutant("a stride of groups", "conv_transpose", where(
        lambda *_, **numbers: numbers["groups"] > 1 and max(numbers["stride"]) > 1, last_element)),
    Mutant("zeros around what is below 0", "max_pool", where(
        lambda x, **numbers: any(map(any, numbers["padding"])),
        lambda right, x, **numbers: np.maximum(right(x, **numbers), np.zeros((), x.dtype)))),
    # Indices.
    *[Mutant("indices of 32 bits", name, short_indices, "errors")
      for name in ("gather", "select", "scatter_add", "embedding", "gather_nd")],
    Mutant("indices after a thousand others", "gather", unchecked_after(256), "errors"),
    # Values.
    Mutant("subnormals are 0", "add", flushing),
    *[Mutant("subnormals are 0", name, flushing, "dtypes")
      for name in ("divide", "greater", "log", "sign")],
    Mutant("integers counted in floats", "arange", counted_in_floats, "dtypes"),
    Mutant("integers beside tensors as floats", "add", numbers_as_floats, "dtypes"),
    Mutant("large angles", "cos", partial(turned, 2 * np.pi)),
    Mutant("sums of float16 beyond it", "sum", short_on_the_way),
    Mutant("a difference of large squares", "var", of_squares),
    Mutant("digits lost near 0", "expm1", naive_difference, "special_cases"),
    # Random numbers.
    Mutant("a counter of 32 bits", "random_uniform",
           lambda right: partial(cut_off, right, bits=32)),
    Mutant("a counter of 64 bits", "random_normal",
           lambda right: partial(cut_off, right, bits=64)),
    # Transfers, and members.
    Mutant("an upload that is read later", "from_data", read_late, "creation"),
    Mutant("an upload that is shared where it is aligned", "from_data", sometimes_shared,
           "creation"),
    Mutant("one buffer for all reads", "to_data", shared_buffer, "transfers"),
    Mutant("more devices than the probe lists", "device_count",
           lambda right: lambda type_id: 5 if type_id == 0 else 0, "contract"),
    Mutant("a type of devices that is not declared", "device_count",
           lambda right: lambda type_id: 1 if type_id < 2 else 0, "contract"),
]  # fmt: skip


IN_GATE = 4
"""The gate tries every so many of them, ``make test-all`` each."""
