"""Suite ``quantized_tensors``: what users do with quantized tensors."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any, Final

import numpy as np

import burn.testing.quantization_reference as of
from burn import namespace as burn
from burn.devices import Device
from burn.dtype import DType, float16, float32, uint8, uint32
from burn.errors import BurnError, DTypeError, ShapeError
from burn.nn.functional import linear
from burn.quant_scheme import QDType, QuantLevel, QuantScheme, QuantStore, QuantValue, ScaleDType
from burn.tensor_data import QuantizedData, TensorData
from burn.testing._check import Skipped
from burn.testing.arrays import floats
from burn.testing.op_samples import Array
from burn.testing.suites.expectations import expect, expect_error, expect_values, gradient_of
from burn.testing.suites.suite import DeviceSuite

__all__ = ["SUITES"]

_suite: Final = DeviceSuite("quantized_tensors", "what users do with quantized tensors")

_INT8: Final = QuantScheme(QuantValue.Q8S, QuantStore.NATIVE)

_SCHEMES: Final = (
    _INT8,
    QuantScheme(QuantValue.Q8F),
    QuantScheme(QuantValue.Q4F, QuantStore.packed_u32()).per_block((1, 8), ScaleDType.F16),
    QuantScheme(QuantValue.Q4S, QuantStore.packed_native(), QuantLevel.per_block(-1)),
    QuantScheme(QuantValue.Q2S, QuantStore.packed_u32(), scale_dtype=ScaleDType.UE8M0),
    QuantScheme(QuantValue.E4M3, QuantStore.NATIVE, QuantLevel.per_block(4, 4)),
    QuantScheme(
        QuantValue.E2M1, QuantStore.packed_native(), QuantLevel.two_level(16), ScaleDType.UE4M3
    ),
)
"""One of each store and level."""

_X: Final = floats(4, 16, low=-3.0, high=3.0).astype(np.float32)


def _quantized(device: Device, scheme: QuantScheme, array: Array = _X) -> Any:
    return burn.asarray(array, device=device).quantize_dynamic(scheme)


def _schemes(device: Device) -> list[QuantScheme]:
    """The schemes whose codes and scales a device can store."""
    found = [
        scheme
        for scheme in _SCHEMES
        if device.supports_dtype(scheme.storage_dtype)
        and device.supports_dtype(scheme.native.storage_dtype)
        and device.supports_dtype(scheme.scale_dtype.storage)
    ]
    if not found:
        raise Skipped("the device has no 8-bit integers")
    return found


def _data(array: Array, scheme: QuantScheme) -> QuantizedData:
    parts = of.quantize(array, scheme)
    return QuantizedData([part for part in parts if part is not None], scheme)


def _numbers(array: Array, scheme: QuantScheme) -> Array:
    return of.dequantize(of.quantize(array, scheme), scheme, float32)


@_suite.check("codes and scales are those of the formulas")
def quantizing(device: Device) -> None:
    """A tensor of each scheme, what it says of itself, and its numbers."""
    for scheme in _schemes(device):
        q = _quantized(device, scheme)
        expect(q.dtype is QDType(scheme), f"the dtype is {q.dtype!r}, not that of {scheme}")
        expect(q.shape == _X.shape, f"the shape is {q.shape}, not {_X.shape}")
        expect(q.data() == _data(_X, scheme), f"codes or scales in {scheme} differ")
        restored = q.dequantize(float32)
        expect_values(f"numbers in {scheme}", restored, _numbers(_X, scheme))
        expect(restored.dequantize() is restored, "floats are not restored as they are")
        again = q.quantize_dynamic(_INT8)
        expect(again.dtype is QDType(_INT8), f"{scheme} was not quantized as {_INT8}")


@_suite.check("host data comes back to the bit")
def host_data(device: Device) -> None:
    """To the device and back, in a pickle, in a copy, and on the same device again."""
    for scheme in _schemes(device):
        data = _data(_X, scheme)
        q = burn.asarray(data, device=device)
        ways: dict[str, Callable[[Any], Any]] = {
            "uploaded": lambda x: x,
            "pickled": lambda x: pickle.loads(pickle.dumps(x)),  # noqa: S301 — our own pickle
            "copied": copy.copy,
            "copied deeply": copy.deepcopy,
            "on its device again": lambda x: x.to_device(x.device),
            "detached": lambda x: x.detach(),
            "sliced as a whole": lambda x: x[0:9],
        }
        for way, make in ways.items():
            expect(make(q).data() == data, f"{way}, codes or scales in {scheme} differ")


@_suite.check("views and selections keep codes")
def views(device: Device) -> None:
    """Codes follow their elements, and scales their blocks."""
    rows = burn.asarray([2, 0], device=device)
    ways: dict[str, tuple[Callable[[Any], Any], Callable[[Array], Array]]] = {
        "x.T": (lambda x: x.T, lambda x: x.T),
        "x[None]": (lambda x: x[None], lambda x: x[None]),
        "x[1:3]": (lambda x: x[1:3], lambda x: x[1:3]),
        "x[1]": (lambda x: x[1], lambda x: x[1]),
        "reshape": (lambda x: burn.reshape(x, (2, 2, 16)), lambda x: x.reshape(2, 2, 16)),
        "flip": (lambda x: burn.flip(x, axis=0), lambda x: x[::-1]),
        "take": (lambda x: burn.take(x, rows, axis=0), lambda x: x[[2, 0]]),
        "expand": (lambda x: burn.broadcast_to(x, (3, 4, 16)), lambda x: np.stack([x] * 3)),
    }
    for scheme in _schemes(device):
        if scheme.level.block == (4, 4):  # parts of its blocks have no scales of their own
            continue
        q, codes = _quantized(device, scheme), of.quantize(_X, scheme)
        native = of.unpack(codes.values, scheme)
        for way, (ours, theirs) in ways.items():
            found = ours(q)
            data = found.data()
            expect_values(f"codes of {way} in {scheme}", data.codes, theirs(native))
            expected = theirs(_numbers(_X, scheme))
            expect_values(f"numbers of {way} in {scheme}", found.dequantize(float32), expected)


@_suite.check("arithmetic with quantized tensors gives floats")
def arithmetic(device: Device) -> None:
    """Two quantized tensors, one and a float, one and a number; comparisons; host conversions."""
    for scheme in _schemes(device):
        numbers = _numbers(_X, scheme)
        q, x = _quantized(device, scheme), burn.asarray(_X, device=device)
        expect_values("q + x", q + x, numbers + _X, exact=False)
        expect_values("x * q", x * q, _X * numbers, exact=False)
        expect_values("q - q", q - q, numbers - numbers, exact=False)
        expect_values("2 * q", 2 * q, np.float32(2) * numbers, exact=False)
        expect_values("sum", burn.sum(q, axis=0), numbers.sum(0), exact=False)
        expect_values("q > 0", q > 0, numbers > 0)
        expect_values(
            "argmax", burn.argmax(q, axis=1).astype(uint8), numbers.argmax(1).astype("u1")
        )
        expect_values("numpy", q.numpy(), numbers)
        expect(q.tolist() == numbers.tolist(), "tolist() differs from the numbers")


@_suite.check("products with quantized weights")
def products(device: Device) -> None:
    """Rows of floats times a weight, in both layouts, and of quantized rows."""
    for scheme in _schemes(device):
        numbers = _numbers(_X, scheme).astype(np.float64)
        q = _quantized(device, scheme)
        rows, columns = floats(3, 4), floats(3, 16)
        for array, weight, found in (
            (rows, numbers, lambda x, q=q: x @ q),
            (columns, numbers.T, lambda x, q=q: x @ q.T),
            (columns, numbers.T, lambda x, q=q: linear(x, q, transposed=True)),
        ):
            x = burn.asarray(array.astype(np.float32), device=device)
            expected = (x.numpy().astype(np.float64) @ weight).astype(np.float32)
            expect_values(f"a product in {scheme}", found(x), expected, exact=False)
        left = _quantized(device, _INT8, columns.astype(np.float32))
        expected = left.numpy().astype(np.float64) @ numbers.T
        expect_values("of two", left @ q.T, expected.astype(np.float32), exact=False)
        if device.supports_dtype(float16):
            x = burn.asarray(columns.astype(np.float16), device=device)
            expect((x @ q.T).dtype is float16, "float16 times a quantized tensor is not float16")


@_suite.check("gradients flow past quantized tensors")
def gradients(device: Device) -> None:
    """The float operand of a product has a gradient; the quantized tensor is a constant."""
    tracked = device.autodiff()
    for scheme in _schemes(device):
        numbers = _numbers(_X, scheme)
        q = _quantized(tracked, scheme)
        x = burn.asarray(floats(4, 16).astype(np.float32), device=tracked).require_grad()
        loss = burn.sum(x @ q.T)
        expected = np.broadcast_to(numbers.sum(0), (4, 16))
        expect_values("the gradient", gradient_of(x, loss), expected, exact=False)
        expect(not q.is_tracked, "a quantized tensor is tracked")
        expect(not x.quantize_dynamic(scheme).is_tracked, "quantizing is tracked")
        expect_error(BurnError, "require_grad() of a quantized tensor", q.require_grad)


@_suite.check("zeros, NaN, infinities and no elements")
def special_numbers(device: Device) -> None:
    """A block of zeros stays zeros; with NaN or an infinity it is NaN; nothing stays nothing."""
    scheme = _INT8.with_level(QuantLevel.per_block(-1))
    if scheme not in _schemes(device) and not device.supports_dtype(_INT8.storage_dtype):
        raise Skipped("the device has no int8")
    x = np.array([[0, 0], [np.nan, 1], [np.inf, 1], [-np.inf, -1], [2, -1]], np.float32)
    restored = _quantized(device, scheme, x).dequantize(float32).numpy()
    expected = _numbers(x, scheme)
    expect_values("restored", restored, expected)
    expect(not restored[0].any(), f"zeros are restored as {restored[0]}")
    expect(np.isnan(restored[1]).all(), f"numbers beside NaN are restored as {restored[1]}")
    expect(np.isfinite(restored[4]).all(), f"another block has {restored[4]}")
    for shape in (0,), (0, 8), (8, 0):
        for quant_scheme in _INT8, scheme:
            q = _quantized(device, quant_scheme, np.zeros(shape, np.float32))
            expect(q.shape == shape, f"an empty tensor has shape {q.shape}, not {shape}")
            expect(q.dequantize().shape == shape, f"restored, it has another shape than {shape}")
            expect(
                q.data() == _data(np.zeros(shape, np.float32), quant_scheme), "its scales differ"
            )


@_suite.check("the largest numbers stay finite")
def largest_numbers(device: Device) -> None:
    """Codes of blocks near the largest float32, whose scales are rounded up, stand for numbers."""
    rows = [[high, -high, high / 2, -high / 3, 1.0, 0.0] for high in (3.4e38, 3e38, 2.6e38, 1.7e38)]
    x = np.array([*rows, [-3.4028234e38, 3.4e38, 1.0, -1.0, 0.0, 1e38]], np.float32)
    tried = 0
    for value in QuantValue:
        for kind in ScaleDType:
            scheme = QuantScheme(value, QuantStore.NATIVE).per_block((1, -1), kind)
            stored = (scheme.storage_dtype, scheme.scale_dtype.storage)
            if not all(device.supports_dtype(dtype) for dtype in stored):
                continue
            tried += 1
            restored = _quantized(device, scheme, x).dequantize(float32).numpy()
            expect(bool(np.isfinite(restored).all()), f"{x} in {scheme} is restored as {restored}")
            expect_values(f"numbers in {scheme}", restored, _numbers(x, scheme))
    if not tried:
        raise Skipped("the device has no 8-bit integers")


@_suite.check("what does not divide is refused")
def refused(device: Device) -> None:
    """Blocks and words that do not divide a shape, calls without a meaning, other dtypes."""
    scheme = _schemes(device)[0]
    x = burn.ones((3, 5), device=device, dtype=float32)
    q = x.quantize_dynamic(scheme)
    blocks = scheme.with_level(QuantLevel.per_block(1, 2))
    expect_error(ShapeError, "blocks of 2", lambda: x.quantize_dynamic(blocks), says="(1, 2)")
    if device.supports_dtype(uint32):
        words = QuantScheme(QuantValue.Q8F, QuantStore.packed_u32())
        expect_error(ShapeError, "words", lambda: x.quantize_dynamic(words), says="packed")
    expect_error(BurnError, "zeros_like", lambda: burn.zeros_like(q), says="not supported")
    integers = burn.ones((3, 5), device=device, dtype=device.settings.int_dtype)
    expect_error(DTypeError, "integers", lambda: integers.quantize_dynamic(scheme))
    expect_error(DTypeError, "q << 1", lambda: q << 1)
    expect_error(BurnError, "DLPack", q.__dlpack__)
    data = TensorData.quantized([1, 2], (2,), _INT8, [0.5])
    expect(data.codes.tolist() == [1, 2], f"codes are {data.codes}")


@_suite.check("a quantized dtype is none of the element types")
def dtypes(device: Device) -> None:
    """It equals its name, and no element type."""
    q = _quantized(device, _schemes(device)[0])
    expect(q.dtype not in DType.members(), "DType.members() has a quantized dtype")
    expect(q.dtype == str(q.dtype), "a quantized dtype does not equal its name")
    expect(not q.dtype.is_integer, "a quantized dtype is one of integers")
    expect(str(q.dtype) in repr(q), f"repr() does not name the dtype: {q!r}")


SUITES: Final = [_suite.suite]
