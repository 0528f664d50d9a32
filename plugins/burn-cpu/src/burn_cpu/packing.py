"""Codes of quantized tensors as words: views of bytes, and bytes that codes share."""

from __future__ import annotations

import sys
from typing import Final

import numpy as np

from burn.plugin_api import QuantScheme
from burn_cpu.base import Array, CpuOps
from burn_cpu.blocks import BLOCK_ELEMENTS, in_blocks
from burn_cpu.compiled import kernels

__all__ = ["IS_LITTLE_ENDIAN", "PackingOps"]

IS_LITTLE_ENDIAN: Final = sys.byteorder == "little"
"""Whether the first code of a word is in its first byte."""


class PackingOps(CpuOps):
    """Codes as words, and back."""

    def pack_values(self, codes: Array, *, scheme: QuantScheme) -> Array:
        """A view of 8-bit codes as words; fewer bits are joined in bytes."""
        if not IS_LITTLE_ENDIAN or codes.dtype != (np.uint8 if scheme.value.is_float else np.int8):
            return self.ops.decomposed("pack_values", codes, scheme=scheme)
        if scheme.per_word == 1:
            return codes
        shape = scheme.values_shape(codes.shape)
        if scheme.logical_shape(shape) != codes.shape:
            raise ValueError(f"codes {codes.shape} of {scheme}")
        axis, bits = scheme.store.axis, scheme.value.bits
        packed = np.ascontiguousarray(_moved(codes, axis, -1)).view(np.uint8)
        if bits < 8:
            fields = packed.reshape(-1)
            packed = np.empty((*packed.shape[:-1], packed.shape[-1] * bits // 8), np.uint8)
            _pack(fields, bits, packed.reshape(-1))
        words = packed.view(scheme.storage_dtype.numpy)
        return np.ascontiguousarray(_moved(words, -1, axis))

    def unpack_values(self, values: Array, *, scheme: QuantScheme) -> Array:
        """The inverse of `pack_values`."""
        if not IS_LITTLE_ENDIAN or values.dtype != scheme.storage_dtype.numpy:
            return self.ops.decomposed("unpack_values", values, scheme=scheme)
        shape = scheme.logical_shape(values.shape)
        scheme.check(shape)
        if scheme.per_word == 1:
            return values
        axis, bits = scheme.store.axis, scheme.value.bits
        native = np.uint8 if scheme.value.is_float else np.int8
        codes = np.ascontiguousarray(_moved(values, axis, -1)).view(native)
        if bits < 8:
            packed = codes.view(np.uint8).reshape(-1)
            codes = np.empty((*codes.shape[:-1], codes.shape[-1] * 8 // bits), native)
            _unpack(packed, bits, codes.reshape(-1))
        return np.ascontiguousarray(_moved(codes, -1, axis))


def _moved(x: Array, source: int, target: int) -> Array:
    """`numpy.moveaxis`, which takes longer than the rest where the axis is there."""
    return x if source == target else np.moveaxis(x, source, target)


def _pack(codes: Array, bits: int, packed: Array) -> None:
    """Codes of 4 or 2 bits, a byte each, in the bytes that they share."""
    family = kernels("codes")
    if family is not None:
        fields = 8 // bits
        in_blocks(
            lambda start, stop: family.pack(
                codes[start * fields : stop * fields], bits, packed[start:stop]
            ),
            packed.size,
            BLOCK_ELEMENTS,
        )
    else:
        packed[...] = 0
        for field in range(8 // bits):
            part = codes[field :: 8 // bits] & np.uint8((1 << bits) - 1)
            packed |= np.left_shift(part, np.uint8(bits * field), out=part)


def _unpack(packed: Array, bits: int, codes: Array) -> None:
    """The inverse of `_pack`; codes of int8 are signed."""
    family = kernels("codes")
    is_signed = codes.dtype == np.int8
    if family is not None:
        fields = 8 // bits
        in_blocks(
            lambda start, stop: family.unpack(
                packed[start:stop], bits, is_signed, codes[start * fields : stop * fields]
            ),
            packed.size,
            BLOCK_ELEMENTS,
        )
    else:
        right = codes.dtype.type(8 - bits)
        for field in range(8 // bits):
            part = np.left_shift(packed, np.uint8(8 - bits * (field + 1))).view(codes.dtype)
            codes[field :: 8 // bits] = np.right_shift(part, right, out=part)
