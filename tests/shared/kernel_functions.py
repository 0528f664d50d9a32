"""The scalar functions of kernels in NumPy."""

import math

import numpy as np

from burn.kernels.functions import FUNCTIONS


def integer(x, y, function):
    """A function of integers, which is 0 where the divisor is 0."""
    zero = y == 0
    return np.where(zero, 0, function(x, np.where(zero, 1, y))).astype(x.dtype)


def shift(x, y, function):
    wide = (y < 0) | (y >= 8 * x.dtype.itemsize)
    over = np.where((x < 0) & (function is np.right_shift), -1, 0).astype(x.dtype)
    return np.where(wide, over, function(x, np.where(wide, 0, y))).astype(x.dtype)


def power(x, y):
    if x.dtype.kind == "f":
        return np.float_power(x, y)
    negative = y < 0
    result = np.power(x, np.where(negative, 0, y))
    of_negative = np.where(np.abs(x) == 1, np.power(x, np.abs(y)), 0)
    return np.where(negative, of_negative, result).astype(x.dtype)


NUMPY = {
    name: getattr(np, name)
    for name in FUNCTIONS
    if hasattr(np, name) and name not in {"pow", "round"}
} | {
    "floor_divide": lambda x, y: integer(x, y, np.floor_divide),
    "remainder": lambda x, y: np.mod(x, y) if x.dtype.kind == "f" else integer(x, y, np.mod),
    "fmod": lambda x, y: np.fmod(x, y) if x.dtype.kind == "f" else integer(x, y, np.fmod),
    "pow": power,
    "round": np.rint,
    "bitwise_not": np.invert,
    "bitwise_left_shift": lambda x, y: shift(x, y, np.left_shift),
    "bitwise_right_shift": lambda x, y: shift(x, y, np.right_shift),
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "atan2": np.arctan2,
    "erf": np.vectorize(math.erf, otypes=[float]),
    "where": np.where,
}
