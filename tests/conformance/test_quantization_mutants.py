"""The kit finds deliberate bugs in quantization: in methods of a backend, and in rules of ops."""

import numpy as np
import pytest
from test_kit_mutations import ONE, first_failure

from burn import Device
from burn.ops import REGISTRY
from burn.plugins import registered
from burn.testing import (
    Selection,
    Status,
    Subject,
    checks_of,
    mock_backend,
    quantization_reference as reference,
)
from mutants import Mutant


def last_code_first(right):
    """The first code of a word in its highest bits."""

    def call(codes, *, scheme):
        axis = codes.ndim + scheme.store.axis
        count = scheme.per_word
        words = (*codes.shape[:axis], codes.shape[axis] // count, count, *codes.shape[axis + 1 :])
        return right(np.flip(codes.reshape(words), axis + 1).reshape(codes.shape), scheme=scheme)

    return call


def unsigned_fields(right):
    """Fields of words without their signs."""

    def call(values, *, scheme):
        found = right(values, scheme=scheme)
        return found if scheme.value.is_float else found & ((1 << scheme.value.bits) - 1)

    return call


def halves_up(right):
    """Numbers between two integers are rounded up, not to the even one."""

    def call(x, scales, global_scale, *, scheme):
        if scheme.value.is_float or scheme.level.block:
            return right(x, scales, global_scale, scheme=scheme)
        scale = reference.scale_numbers_at(scales, scheme.scale_dtype)
        low, high = scheme.value.range
        with np.errstate(all="ignore"):
            codes = np.floor(np.float32(x) / np.float32(scale) + np.float32(0.5))
            codes = np.nan_to_num(np.clip(codes, low, high)).astype(np.int8)
        return reference.pack(codes, scheme)

    return call


def nearest_scales(right):
    """Scales rounded to the nearest number, so that some are too small."""

    def call(scales, *, scheme):
        storage = scheme.scale_dtype.storage
        if storage.is_float:
            return np.asarray(scales).astype(storage.numpy)
        return right(scales, scheme=scheme)

    return call


def nearest_scales_of_ranges(right):
    """The same where scales are computed from a tensor."""

    def call(x, *, scheme):
        values, scales = right(x, scheme=scheme)
        if scales.dtype != np.float16 or not scales.size:
            return values, scales
        return values, np.nextafter(scales, np.float16(0.0))

    return call


def without_zero_scales(right):
    """A division by a scale of 0."""

    def call(x, scales, global_scale, *, scheme):
        if scheme.scale_dtype.storage.is_float and global_scale is None:
            scales = np.where(scales == 0, np.finfo(np.float32).tiny, scales).astype(scales.dtype)
        return right(x, scales, global_scale, scheme=scheme)

    return call


def without_global_scale(right):
    """Numbers of two levels by the scales of their blocks alone."""

    def call(values, scales, global_scale, *, scheme, dtype):
        rest = None if global_scale is None else np.ones_like(global_scale)
        return right(values, scales, rest, scheme=scheme, dtype=dtype)

    return call


def first_scale(right):
    """The scale of the first block for all of them."""

    def call(x, values, scales, global_scale, bias, **attributes):
        same = np.broadcast_to(scales.reshape(-1)[:1], scales.shape) if scales.size else scales
        return right(x, values, same, global_scale, bias, **attributes)

    return call


def without_bias(right):
    """A product without its bias."""

    def call(*operands, **attributes):
        return right(*operands[:4], None, **attributes)

    return call


MUTANTS = [
    Mutant("words by the last code first", "pack_values", last_code_first),
    Mutant(
        "words by the last code first, in a scheme", "pack_values", last_code_first, "quantization"
    ),
    Mutant("fields without signs", "unpack_values", unsigned_fields),
    Mutant("fields without signs, in a scheme", "unpack_values", unsigned_fields, "quantization"),
    Mutant("halves rounded up", "quantize_values", halves_up),
    Mutant("scales rounded to the nearest", "round_up_scales", nearest_scales),
    Mutant("scales of ranges rounded down", "quantize_dynamic", nearest_scales_of_ranges),
    Mutant(
        "scales of ranges rounded down, in a scheme",
        "quantize_dynamic",
        nearest_scales_of_ranges,
        "quantization",
    ),
    Mutant("codes of a scale of 0", "quantize_values", without_zero_scales),
    Mutant("no global scale", "dequantize_values", without_global_scale),
    Mutant("one scale for all blocks", "quantized_linear", first_scale),
    Mutant("no bias", "quantized_product", without_bias),
]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_quick_kit_finds_a_bug_in_quantization(mutant):
    where = {"ops": (mutant.member,)}
    if mutant.suite:
        where = {"ops": ("",), "suites": (mutant.suite,)}
    found = first_failure(mutant.backend(), ONE, Selection(**where, quick=True))
    assert found is not None
    assert found.message
    assert found.script


def blocks_of_rows(shape, block, *, is_ordered, axes):
    """Blocks that stay where they are while the elements are permuted."""
    del shape, is_ordered
    return block, {"axes": axes}


def all_blocks(shape, block, *, is_ordered, axis, index):
    """The first block, whichever element is taken."""
    del shape, is_ordered, index
    return (*block[:axis], *block[axis + 1 :]), {"axis": axis, "index": 0}


def weight_by_codes(ops, dtype, x, weight, bias, *, transposed=False):
    """A product with codes, without their scales."""
    if not hasattr(weight, "values") or hasattr(x, "values") or hasattr(bias, "values"):
        return NotImplemented
    codes = ops.cast(weight.values, dtype=dtype)
    return ops.linear(x, codes, bias, transposed=transposed)


@pytest.mark.parametrize(
    ("op", "member", "wrong"),
    [
        ("permute", "blocks", blocks_of_rows),
        ("index_axis", "blocks", all_blocks),
        ("linear", "quantized", weight_by_codes),
    ],
)
def test_the_quick_kit_finds_a_wrong_rule_of_quantized_tensors(op, member, wrong, monkeypatch):
    backend = Mutant("a copy of burn-cpu", "exp", lambda right: right).backend()
    selection = Selection(ops=(op,), suites=("quantization",), quick=True)
    assert first_failure(backend, ONE, selection) is None
    monkeypatch.setattr(REGISTRY[op], member, wrong)
    assert first_failure(backend, ONE, selection) is not None


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("plain", marks=pytest.mark.exhaustive),
        "no_64bit",
        pytest.param("stores_float16", marks=pytest.mark.exhaustive),
    ],
)
def test_a_device_with_the_required_ops_alone_passes(kind):
    selection = Selection(ops=("",), suites=("quantization", "quantized_tensors"), quick=True)
    with registered(mock_backend()):
        subject = Subject.of(Device(f"mock/{kind}"))
        results = [check.run() for check in checks_of(subject, selection)]
    assert results
    assert not [str(result) for result in results if result.status is not Status.PASSED]
