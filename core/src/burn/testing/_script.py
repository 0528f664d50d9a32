"""Programs that show a failure: a transcript of the calls that led to it, with literal values.

A `Transcript` replaces the backend and the op table of a subject. Code that makes its calls through
these two runs on it unchanged, and the result is a program that makes the same calls.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from burn.dtype import DType
from burn.ir import GraphIr
from burn.ops import REGISTRY, Meta
from burn.quant_scheme import QuantScheme
from burn.tensor_data import TensorData
from burn.testing._compiled import Compiled
from burn.testing._minimal import Minimal

if TYPE_CHECKING:
    from burn.aliases import Shape
    from burn.device_id import DeviceId
    from burn.devices import Device
    from burn.ops import OpTable
    from burn.testing.op_samples import Array
    from burn.testing.tolerance import Comparison

__all__ = ["Recorded", "Transcript", "literal"]


@dataclass(frozen=True)
class Recorded:
    """A primitive of which only its name in the program, its shape and its dtype are known."""

    name: str
    shape: Shape
    dtype: DType


class Transcript:
    """A program in the making.

    It has `from_data` of a backend, and `table` gives what stands in for an op table.

    Parameters
    ----------
    backend : Backend
        The backend that the program runs on.
    device : DeviceId
        The device that it runs on.
    handle : Device, optional
        The same device as users know it.
    """

    def __init__(self, backend: Any, device: DeviceId, handle: Device | None) -> None:
        self._imports = {
            "import burn",
            "import numpy as np",
            "from burn.ops import resolve",
            "from burn.tensor_data import TensorData",
        }
        self._setup = self._preamble(backend, device, handle)
        self._lines: list[str] = []
        self._depth = 0
        self._count = 0

    def __str__(self) -> str:
        imports = sorted(self._imports, key=lambda line: (line.startswith("from"), line))
        return "\n".join([*imports, "", *self._setup, "", *self._lines]) + "\n"

    def from_data(self, data: TensorData, device: Any) -> Recorded:
        """A literal that is uploaded."""
        del device
        return self.assign(f"upload({_array(data.array)})", data.array.shape, data.dtype)

    def table(self, name: str) -> OpTable:
        """What writes down calls in the op table that has this name in the program."""
        return cast("OpTable", _Table(self, name))

    def need(self, line: str) -> None:
        """Have an import in the program."""
        self._imports.add(line)

    def set_up(self, line: str) -> None:
        """Have a line among the preparations."""
        if line not in self._setup:
            self._setup.append(line)

    def write(self, line: str) -> None:
        """Add a line."""
        self._lines.append("    " * self._depth + line)

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """Lines below a head, such as ``try:``."""
        self.write(head)
        self._depth += 1
        yield
        self._depth -= 1

    def assign(self, expression: str, shape: Shape, dtype: DType) -> Recorded:
        """Add a line that gives a primitive a name."""
        name = f"x{self._count}"
        self._count += 1
        self.write(f"{name} = {expression}")
        return Recorded(name, tuple(shape), dtype)

    def call(
        self, table: str, name: str, operands: Sequence[Any], attributes: Mapping[str, Any]
    ) -> Any:
        """Add a line that calls an op, and give what `Op.infer` says it returns."""
        parts = [_operand(operand) for operand in operands]
        parts += [f"{key}={literal(value)}" for key, value in attributes.items()]
        return self.outputs(f"{table}.{name}({', '.join(parts)})", name, operands, attributes)

    def outputs(
        self, expression: str, op: str, operands: Sequence[Any], attributes: Mapping[str, Any]
    ) -> Any:
        """Add a line that gives what an expression returns the names of an op's outputs."""
        definition = REGISTRY[op]
        names = []
        for _ in definition.output_names(operands, attributes):
            names.append(f"x{self._count}")
            self._count += 1
        end = "," if definition.returns_tuple else ""
        self.write(f"{', '.join(names)}{end} = {expression}")
        try:
            inferred = definition.infer(*_metas(operands), **attributes)
        except Exception:  # noqa: BLE001 — a call that shall be refused has no outputs
            inferred = [Meta((), DType.of("bool"))] * len(names)
        metas = [inferred] if isinstance(inferred, Meta) else inferred
        outputs = [
            Recorded(name, meta.shape, meta.dtype) for name, meta in zip(names, metas, strict=True)
        ]
        return tuple(outputs) if definition.returns_tuple else outputs[0]

    def expect_value(self, output: Recorded, comparison: Comparison) -> None:
        """Assert the element that a comparison found wrong."""
        if comparison.index is None or comparison.expected is None:
            raise ValueError("the comparison found no wrong element")
        self.write(f"value = read({output.name})[{_index(comparison.index)}]")
        self.write(_assertion(comparison.expected, comparison.allowed))

    def expect_meta(self, output: Recorded, meta: Meta) -> None:
        """Assert shape and dtype of an output."""
        self.write(f"value = tuple({output.name}.shape), ops.dtype({output.name})")
        self.write(f"assert value == ({literal(meta.shape)}, {literal(meta.dtype)}), value")

    def expect_close(self, expression: str, number: float, allowed: float) -> None:
        """Assert that an expression is near a number."""
        self.write(f"value = {expression}")
        self.write(_assertion(np.asarray(number), allowed))

    def _preamble(self, backend: Any, device: DeviceId, handle: Device | None) -> list[str]:
        """Lines that define ``backend``, ``device_id``, ``ops``, ``upload`` and ``read``."""
        lines = []
        wrappers = []
        while isinstance(backend, (Compiled, Minimal)):
            wrappers.append(type(backend).__name__)
            backend = backend.wrapped
        if handle is not None:
            lines.append(f"device = burn.Device({handle.name!r})")
            shown_backend, shown_id = "device.backend", "device.id"
        else:
            kind = type(backend)
            self._imports.add(f"from {kind.__module__} import {kind.__qualname__}")
            self._imports.add("from burn.device_id import DeviceId")
            shown_backend = f"{kind.__qualname__}()"
            shown_id = f"DeviceId({device.type_id}, {device.index_id})"
        for name in reversed(wrappers):
            self._imports.add(f"from burn.testing import {name}")
            shown_backend = f"{name}({shown_backend})"
        return [
            *lines,
            f"backend, device_id = {shown_backend}, {shown_id}",
            "ops = resolve(backend, device_id)",
            "upload = lambda array: backend.from_data(TensorData(array), device_id)",
            "read = lambda primitive: backend.to_data(primitive).array",
        ]


class _Table:
    """Stands in for an `OpTable`: takes `Recorded` operands, and writes a line for each call."""

    def __init__(self, transcript: Transcript, name: str) -> None:
        self._transcript = transcript
        self._name = name

    def __getattr__(self, op: str) -> Callable[..., Any]:
        if op not in REGISTRY:
            raise AttributeError(f"there is no op {op!r}")
        return lambda *operands, **attributes: self._transcript.call(
            self._name, op, operands, attributes
        )

    def dtype(self, primitive: Recorded) -> DType:
        """DType of a primitive."""
        return primitive.dtype


def literal(value: Any) -> str:
    """A value as an expression, for a program that has imported burn and numpy as np."""
    if isinstance(value, DType):
        return repr(value)
    if isinstance(value, complex):
        return f"complex({literal(value.real)}, {literal(value.imag)})"
    if isinstance(value, float) and not math.isfinite(value):
        return "np.nan" if math.isnan(value) else "np.inf" if value > 0 else "-np.inf"
    if isinstance(value, tuple):
        parts = [literal(part) for part in value]
        return f"({', '.join(parts)}{',' if len(parts) == 1 else ''})"
    if isinstance(value, list):
        return f"[{', '.join([literal(part) for part in value])}]"
    if isinstance(value, QuantScheme):
        return f"burn.quantization.QuantScheme.parse({value.text!r})"
    if isinstance(value, GraphIr):
        return f"burn.ir.GraphIr.from_text({value.to_text()!r})"
    return repr(value)


def _array(array: Array) -> str:
    dtype = DType.of(array.dtype)
    if array.size == 0:
        return f"np.empty({literal(array.shape)}, {literal(dtype)}.numpy)"
    return f"np.array({literal(array.tolist())}, {literal(dtype)}.numpy)"


def _operand(operand: Any) -> str:
    if isinstance(operand, list):
        return f"[{', '.join(map(_operand, operand))}]"
    return operand.name if isinstance(operand, Recorded) else literal(operand)


def _metas(operands: Sequence[Any]) -> list[Any]:
    return [
        _metas(operand)
        if isinstance(operand, list)
        else Meta(operand.shape, operand.dtype)
        if isinstance(operand, Recorded)
        else operand
        for operand in operands
    ]


def _index(index: tuple[int, ...]) -> str:
    return ", ".join(map(str, index)) if index else "()"


def _assertion(expected: Array, allowed: float | None) -> str:
    """Line that compares ``value``; text tells NaN from NaN, and zeros by their sign."""
    number = expected.item()
    kind = expected.dtype.kind
    if allowed is not None and np.isfinite(number):
        as_number = "complex" if kind == "c" else "float"
        shown = f'f"{{value}}, not {number!r}"'
        return f"assert abs({as_number}(value) - {literal(number)}) <= {allowed!r}, {shown}"
    if kind in "biu":
        return f'assert int(value) == {int(number)}, f"{{value}}, not {number!r}"'
    as_number = "complex" if kind == "c" else "float"
    return f'assert str({as_number}(value)) == {str(number)!r}, f"{{value}}, not {number!r}"'
