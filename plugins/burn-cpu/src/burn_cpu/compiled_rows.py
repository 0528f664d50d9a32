"""Kernels of rows: softmax and normalization. Rows of some length lie in arrays of one axis."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from burn_cpu.base import Array
from burn_cpu.compiled_base import CHUNK_ELEMENTS, ONE, ZERO, compiled, exp


@compiled
def peak(row: Array) -> Any:
    """The largest element of a row, or NaN where it has one; NaN with a sign may be passed over.

    It is found among the bits as integers, as LLVM vectorizes no maximum of numbers that may be
    NaN: the largest integer, or the smallest one where all numbers are negative.
    """
    bits = row.view(np.int32)
    top = np.int32(-(2**31))
    for i in range(len(bits)):
        top = max(top, bits[i])
    if top < 0:
        for i in range(len(bits)):
            top = min(top, bits[i])
    return np.int32(top).view(np.float32)


@compiled
def softmax(x: Array, length: int, out: Array) -> None:
    """``exp(row - max(row))`` divided by its sum, for each row."""
    for first in range(0, len(x), length):
        row, result = x[first : first + length], out[first : first + length]
        top = peak(row)
        total = 0.0
        for start in range(0, length, CHUNK_ELEMENTS):
            part = ZERO
            for i in range(start, min(start + CHUNK_ELEMENTS, length)):
                power = exp(row[i] - top)
                result[i] = power
                part += power
            total += part
        factor = np.float32(1.0 / total)
        for i in range(length):
            result[i] *= factor


@compiled
def log_softmax(x: Array, length: int, out: Array) -> None:
    """``row - max(row)`` less the logarithm of the sum of its exponentials, for each row."""
    for first in range(0, len(x), length):
        row, result = x[first : first + length], out[first : first + length]
        top = peak(row)
        total = 0.0
        for start in range(0, length, CHUNK_ELEMENTS):
            part = ZERO
            for i in range(start, min(start + CHUNK_ELEMENTS, length)):
                distance = row[i] - top
                result[i] = distance
                part += exp(distance)
            total += part
        shift = np.float32(math.log(total))
        for i in range(length):
            result[i] -= shift


@compiled
def cross_entropy(x: Array, length: int, labels: Array, out: Array) -> bool:
    """``log(sum(exp(row))) - row[label]`` for each row; returns whether there is no such label."""
    for number in range(len(labels)):
        row, label = x[number * length : (number + 1) * length], labels[number]
        if not 0 <= label < length:
            return True
        top = peak(row)
        total = 0.0
        for start in range(0, length, CHUNK_ELEMENTS):
            part = ZERO
            for i in range(start, min(start + CHUNK_ELEMENTS, length)):
                part += exp(row[i] - top)
            total += part
        out[number] = np.float32(math.log(total)) + (top - row[label])
    return False


@compiled
def cross_entropy_grad(x: Array, length: int, labels: Array, g: Array, out: Array) -> bool:
    """Gradient of `cross_entropy`: the softmax of each row, less 1 at its label, times `g`."""
    softmax(x, length, out)
    for number in range(len(labels)):
        result, label = out[number * length : (number + 1) * length], labels[number]
        if not 0 <= label < length:
            return True
        result[label] -= ONE
        for i in range(length):
            result[i] *= g[number]
    return False


@compiled
def softmax_grad(output: Array, g: Array, length: int, out: Array) -> None:
    """Gradient of softmax, given its output."""
    for first in range(0, len(output), length):
        row, slope = output[first : first + length], g[first : first + length]
        result = out[first : first + length]
        total = 0.0
        for start in range(0, length, CHUNK_ELEMENTS):
            part = ZERO
            for i in range(start, min(start + CHUNK_ELEMENTS, length)):
                part += row[i] * slope[i]
            total += part
        level = np.float32(total)
        for i in range(length):
            result[i] = (slope[i] - level) * row[i]


@compiled
def log_softmax_grad(output: Array, g: Array, length: int, out: Array) -> None:
    """Gradient of log_softmax, given its output."""
    for first in range(0, len(output), length):
        row, slope = output[first : first + length], g[first : first + length]
        result = out[first : first + length]
        level = np.float32(_sum(slope))
        for i in range(length):
            result[i] = slope[i] - exp(row[i]) * level


@compiled
def _sum(row: Array) -> float:
    total = 0.0
    for start in range(0, len(row), CHUNK_ELEMENTS):
        part = ZERO
        for i in range(start, min(start + CHUNK_ELEMENTS, len(row))):
            part += row[i]
        total += part
    return total


@compiled
def _moments(row: Array, epsilon: float) -> Any:
    """The mean of a row, and the inverse of its standard deviation."""
    count = len(row)
    mean = np.float32(_sum(row) / count)
    total = 0.0
    for start in range(0, count, CHUNK_ELEMENTS):
        part = ZERO
        for i in range(start, min(start + CHUNK_ELEMENTS, count)):
            distance = row[i] - mean
            part += distance * distance
        total += part
    return mean, np.float32(1.0 / math.sqrt(total / count + epsilon))


@compiled
def rms_norm(x: Array, scale: Array, epsilon: float, out: Array) -> None:
    """Rows divided by the root of their mean square, scaled."""
    length = len(scale)
    for first in range(0, len(x), length):
        row, result = x[first : first + length], out[first : first + length]
        total = 0.0
        for start in range(0, length, CHUNK_ELEMENTS):
            part = ZERO
            for i in range(start, min(start + CHUNK_ELEMENTS, length)):
                part += row[i] * row[i]
            total += part
        inverse = np.float32(1.0 / math.sqrt(total / length + epsilon))
        for i in range(length):
            result[i] = row[i] * inverse * scale[i]


@compiled
def layer_norm(x: Array, scale: Array, shift: Array, epsilon: float, out: Array) -> None:
    """Rows normalized to mean 0 and variance 1, scaled and shifted."""
    length = len(scale)
    for first in range(0, len(x), length):
        row, result = x[first : first + length], out[first : first + length]
        mean, inverse = _moments(row, epsilon)
        for i in range(length):
            result[i] = (row[i] - mean) * inverse * scale[i] + shift[i]


@compiled
def layer_norm_grad(
    x: Array, g: Array, scale: Array, epsilon: float, out: Array, sums: Array
) -> None:
    """Gradient by the rows; the gradients by scale and shift are written to `sums`."""
    length = len(scale)
    scale_grad, shift_grad = sums[0], sums[1]
    scale_grad[:] = ZERO
    shift_grad[:] = ZERO
    for first in range(0, len(x), length):
        row, slope = x[first : first + length], g[first : first + length]
        result = out[first : first + length]
        mean, inverse = _moments(row, epsilon)
        total = 0.0
        product = 0.0
        for start in range(0, length, CHUNK_ELEMENTS):
            part = ZERO
            product_part = ZERO
            for i in range(start, min(start + CHUNK_ELEMENTS, length)):
                scaled = slope[i] * scale[i]
                part += scaled
                product_part += scaled * (row[i] - mean)
            total += part
            product += product_part
        level = np.float32(total / length)
        slope_factor = np.float32(product / length) * inverse * inverse
        # LLVM vectorizes a loop that writes to one array only.
        for i in range(length):
            result[i] = (slope[i] * scale[i] - level - (row[i] - mean) * slope_factor) * inverse
        for i in range(length):
            scale_grad[i] += slope[i] * ((row[i] - mean) * inverse)
        for i in range(length):
            shift_grad[i] += slope[i]
