"""HIP: AMD's compiler, which needs no GPU, accepts generated kernels and the shared sources."""

import contextlib
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from pathlib import Path

import hip_compiler
import pytest
from test_kernels import SOURCES

from burn.plugin_api import (
    FUNCTIONS,
    DeviceId,
    DType,
    ExecutionError,
    GraphIr,
    Kind,
    Tag,
    Target,
    generalized,
    planned,
)
from burn.testing import SAMPLES, Compiled, Subject, load_samples
from burn.testing.subject import Call
from burn_cuda import programs
from burn_cuda.backend import CudaBackend
from burn_cuda.dialect import CudaWriter, HipWriter, code_of
from burn_cuda.kernels import text

sys.path.insert(0, str(Path(__file__).parent / "emulation"))

import emulated

pytestmark = [
    pytest.mark.exhaustive,
    pytest.mark.skipif(
        not hip_compiler.IS_INSTALLED,
        reason="clang-15, lld-15, rocm-device-libs or libamdhip64-dev is not installed",
    ),
]

load_samples()
DTYPES = [dtype for dtype in DType.members() if dtype.kind in Kind.REAL]
TOGETHER = 400
"""Kernels that one call of the compiler gets."""

LOOPS = frozenset({"while_loop"})
"""Ops that go on until a kernel has computed something."""


def check(kernels):
    """Compile texts of generated kernels whose names differ, many at once."""
    rooms = [
        f"namespace n{number} {{{kernel.removeprefix(HipWriter.preamble)}}}"
        for number, kernel in enumerate(kernels)
    ]
    parts = [rooms[first : first + TOGETHER] for first in range(0, len(rooms), TOGETHER)]
    check_sources(["\n".join([HipWriter.preamble, *part]) for part in parts])


def check_sources(sources):
    assert sources
    pairs = list(product(sources, hip_compiler.ARCHITECTURES))
    with ThreadPoolExecutor() as pool:
        for errors in pool.map(hip_compiler.errors, *zip(*pairs, strict=True)):
            assert errors == ""


def generated(graphs, writer=HipWriter, *, is_general=False):
    """The texts of the one kernel of each program; general ones serve many shapes."""
    target = Target(frozenset(DTYPES), lambda _: False)
    for number, graph in enumerate(graphs):
        (call,) = planned(GraphIr.from_text(graph), target).steps
        kernel = generalized(call.kernel)[0] if is_general else call.kernel
        yield code_of(kernel, {}, f"k{number}", writer).text


def functions():
    """A program for each scalar function of each dtype."""
    for name, function in FUNCTIONS.items():
        for dtype in DTYPES:
            if dtype.kind not in function.kinds:
                continue
            operands = [dtype] * function.operands
            operands[:1] = ["bool"] if name == "where" else operands[:1]
            inputs = [f"input %{index}: {kind}[1000]" for index, kind in enumerate(operands)]
            given = ", ".join([f"%{index}" for index in range(len(operands))])
            results = ["bool"] if function.gives_bool else [dtype]
            for result in DTYPES if name == "cast" else results:
                kind = f", dtype={result}" if name == "cast" else ""
                call = f"%9: {result}[1000] = {name}({given}{kind})"
                yield "\n".join([*inputs, call, "output %9"])


def reduction(name, dtype, shape, axis):
    """A program that compares elements with a reduction along one of two axes."""
    kept = [1 if number == axis else length for number, length in enumerate(shape)]
    kind = f", dtype={dtype}" if name in ("sum", "prod") else ""
    return f"""
input %0: {dtype}{[*shape]}
%1: {dtype}{kept} = {name}(%0, axis=({axis},), keepdims=True{kind})
%2: bool{[*shape]} = equal(%0, %1)
output %1
output %2"""


def reductions():
    """Rows of lanes that exchange registers, of several warps, and of neighbouring rows."""
    for name, dtype in product(("sum", "prod", "max", "min", "any", "all"), DTYPES):
        if dtype.is_bool is (name in ("any", "all")):
            for shape, axis in (((40, 100), 1), ((3, 5000), 1), ((40, 100), 0)):
                yield reduction(name, dtype, shape, axis)


def test_each_function_of_each_dtype_compiles():
    kernels = list(generated(functions()))
    assert len(kernels) > 500
    check(kernels)


def test_reductions_of_lanes_that_exchange_registers_compile():
    kernels = list(generated(reductions()))
    assert sum("__shfl_xor(" in kernel for kernel in kernels) > 50
    check(kernels)
    check(list(generated(reductions(), is_general=True)))


class _Nothing:
    """A kernel that computes nothing."""

    def __call__(self, *arguments, **options):
        pass

    early = launch = __call__


class _Runtime(emulated.Runtime):
    """A device that compiles no kernel."""

    def compile(self, source, name, *, contracts=True):
        return _Nothing()


@pytest.fixture
def kernels_of_kit(monkeypatch):
    """The generated kernels of each sample of the kit, which is tried with one of its dtypes."""
    found = {}

    def collected(kernel, checks, name):
        found.setdefault(code_of(kernel, checks, "NAME", HipWriter).text, f"k{len(found)}")
        return code_of(kernel, checks, name)

    monkeypatch.setattr(programs, "code_of", collected)
    subject = Subject(Compiled(CudaBackend(_Runtime, lambda: 2)), DeviceId(0, 1))
    for name, samples in SAMPLES.items():
        if name in LOOPS or Tag.DATA_DEPENDENT in samples.op.tags:
            continue
        for number, sample in enumerate(samples.samples):
            dtypes = subject.dtypes(samples, sample)
            if dtypes:
                call = Call.of(samples, sample, dtypes[number % len(dtypes)], subject.index_dtype)
                with contextlib.suppress(ExecutionError):  # of matrices that nothing computed
                    getattr(subject.table, name)(*call.upload(subject), **call.attributes)
    return [text.replace("NAME", name) for text, name in found.items()]


def test_the_generated_kernels_of_the_kit_compile(kernels_of_kit):
    assert len(kernels_of_kit) > 1000
    check(kernels_of_kit)


def test_shared_sources_and_steps_of_optimizers_compile():
    sources = [source for source in SOURCES.values() if source.startswith(HipWriter.preamble)]
    assert sum(text("dialect.cuh") in source for source in sources) > 100
    assert sum(text("dialect.cuh") not in source for source in sources) > 20
    check_sources(sources)


def test_a_kernel_that_is_wrong_does_not_compile():
    graph = reduction("sum", "float16", (3, 5000), 1)
    (right,) = generated([graph])
    (of_cuda,) = generated([graph], CudaWriter)
    for wrong, message in (
        (of_cuda, "'__shfl_xor_sync'"),
        (right.replace("__syncthreads", "__syncthread"), "'__syncthread'"),
        (right.replace("half_as_float(unsigned", "half(unsigned"), "'half_as_float'"),
        (right + "__device__ int f();\n__global__ void g(int* p) { *p = f(); }", "f()"),
    ):
        for architecture in hip_compiler.ARCHITECTURES:
            assert message in hip_compiler.errors(wrong, architecture)
            assert hip_compiler.errors(right, architecture) == ""
