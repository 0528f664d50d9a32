"""Programs for tests: a graph of each sample of an op, and how to compare graphs to the bit."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from burn import int64
from burn.dtype import DType
from burn.ir import Constant, Draw, Drop, GraphIr, OperationIr, ScalarIr, Status, TensorIr
from burn.ops import REGISTRY, Meta
from burn.ops.arguments import as_python
from burn.tensor_data import TensorData
from burn.testing import samples  # noqa: F401 — it fills SAMPLES
from burn.testing.op_samples import SAMPLES, OpSamples, Sample, resolve_attributes

DTYPE_OF_KIND = {"b": "bool", "i": "int32", "u": "uint8", "f": "float32", "c": "complex64"}


def dtype_for(kinds: str) -> DType:
    """A dtype of the kinds of a sample."""
    return DType.of(next(DTYPE_OF_KIND[kind] for kind in "fiucb" if kind in kinds))


def calls() -> Iterator[tuple[OpSamples, Sample]]:
    """Every sample of every op."""
    for known in SAMPLES.values():
        for sample in known.samples:
            yield known, sample


class GraphBuilder:
    """Collects the parts of a graph."""

    def __init__(self) -> None:
        self.inputs: list[TensorIr | ScalarIr] = []
        self.constants: list[Constant] = []
        self.operations: list[OperationIr | Drop] = []
        self.draw: Draw | None = None
        self.tensors: list[TensorIr] = []
        self.scalars = 0

    def tensor(self, meta: Meta) -> TensorIr:
        """A new tensor."""
        self.tensors.append(TensorIr(len(self.tensors), *meta))
        return self.tensors[-1]

    def input(self, meta: Meta) -> TensorIr:
        """A new input."""
        self.inputs.append(self.tensor(meta))
        return self.tensors[-1]

    def constant(self, array: Any) -> TensorIr:
        """A new constant."""
        data = TensorData(array)
        self.constants.append(Constant(self.tensor(Meta(data.shape, data.dtype)), data))
        return self.tensors[-1]

    def scalar(self, kind: type) -> ScalarIr:
        """A new scalar, which is an input."""
        self.inputs.append(self.new_scalar(kind))
        return self.inputs[-1]

    def new_scalar(self, kind: type) -> ScalarIr:
        """A new scalar, which is none."""
        self.scalars += 1
        return ScalarIr(self.scalars - 1, kind)

    def call(
        self, name: str, inputs: list[Any], attributes: Mapping[str, Any], source: str = ""
    ) -> tuple[TensorIr, ...]:
        """A call of an op: its outputs."""
        definition = REGISTRY[name]
        known = {
            key: value.kind(1) if isinstance(value, ScalarIr) else value
            for key, value in attributes.items()
        }
        metas = definition.infer(*map(_meta, inputs), **known)
        metas = metas if definition.returns_tuple else [metas]
        outputs = tuple([self.tensor(meta) for meta in metas])
        operands = tuple(tuple(source) if isinstance(source, list) else source for source in inputs)
        made = tuple(output._replace(status=Status.NOT_INIT) for output in outputs)
        self.operations.append(OperationIr(name, operands, dict(attributes), made, source))
        return outputs

    def graph(self, *outputs: TensorIr) -> GraphIr:
        """The graph."""
        return GraphIr(
            tuple(self.inputs),
            tuple(self.constants),
            tuple(self.operations),
            outputs,
            self.draw,
        )


def _meta(operand: Any) -> Any:
    if isinstance(operand, TensorIr):
        return Meta(operand.shape, operand.dtype)
    return [_meta(part) for part in operand] if isinstance(operand, list) else operand


def sample_operands(known: OpSamples, one: Sample) -> list[Any]:
    """The operands of a sample with Meta instead of arrays."""
    tested = dtype_for(one.kinds)
    found = []
    for spec, operand in zip(known.op.operands.values(), one.operands, strict=True):
        metas = [
            Meta(array.shape, tested if spec.promotes or spec.is_list else DType.of(array.dtype))
            if isinstance(array, np.ndarray)
            else array
            for array in (operand if spec.is_list else [operand])
        ]
        found.append(metas if spec.is_list else metas[0])
    return found


def sample_attributes(one: Sample) -> dict[str, Any]:
    """The attributes of a sample."""
    return resolve_attributes(one.attributes, dtype_for(one.kinds), int64)


def sample_graph(known: OpSamples, one: Sample) -> GraphIr:
    """A graph that calls an op as a sample does."""
    builder = GraphBuilder()
    inputs = [
        [builder.input(meta) for meta in operand]
        if isinstance(operand, list)
        else builder.input(operand)
        if isinstance(operand, Meta)
        else operand
        for operand in sample_operands(known, one)
    ]
    outputs = builder.call(known.op.name, inputs, sample_attributes(one), "model.py:3")
    return builder.graph(*outputs)


def exact(value: Any) -> Any:
    """A value such that two are equal only if types, and bits of numbers, are the same."""
    if isinstance(value, GraphIr):
        parts = (value.inputs, value.constants, value.operations, value.outputs, value.draw)
        return ("graph", *map(exact, parts), value.donated)
    if isinstance(value, TensorData):
        bits = np.asarray(value.array, order="C").tobytes()
        return (value.dtype.name, value.shape, bits)
    if isinstance(value, DType):
        return ("dtype", value.name)
    value = as_python(value)
    if isinstance(value, dict):
        return {name: exact(part) for name, part in value.items()}
    if isinstance(value, (OperationIr, TensorIr, Constant, Draw, Drop)):
        return (type(value).__name__, *map(exact, value))
    if isinstance(value, (tuple, list)):
        return ("items", *map(exact, value))
    if isinstance(value, float):
        return ("float", struct.pack("<d", value))
    if isinstance(value, complex):
        return ("complex", struct.pack("<dd", value.real, value.imag))
    return (type(value).__name__, value)
