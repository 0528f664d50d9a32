"""Every kernel is accepted by NVIDIA's own compiler, which needs no GPU."""

import itertools

import nvrtc
import pytest

from burn.dtype import DType, Kind
from burn_cuda.expressions import EXPRESSIONS
from burn_cuda.kernels import C_TYPES, c_type, computed_type, source
from burn_cuda.kernels.elementwise import Program, dense_source, strided_source
from burn_cuda.usage import STORED

pytestmark = pytest.mark.skipif(
    nvrtc.library() is None, reason="NVRTC is not installed: pip install nvidia-cuda-nvrtc"
)

FLOATS = [dtype for dtype in STORED if dtype.is_float]
REDUCERS = {
    **dict.fromkeys(("Sum", "Mean", "Product"), 0),
    **dict.fromkeys(("Any", "All"), 1),
    **dict.fromkeys(("Maximum", "Minimum", "PlaceOfLargest", "PlaceOfSmallest"), 2),
}
ROW_KERNELS = (
    *("softmax", "softmax_grad", "log_softmax", "log_softmax_grad", "layer_norm"),
    *("layer_norm_grad", "rms_norm", "cross_entropy", "cross_entropy_grad"),
)
FLOATING = {dtype: ("FLOATING",) if dtype.is_float else () for dtype in STORED}
KEYS = {1: "unsigned char", 2: "unsigned short", 4: "unsigned int", 8: "uint64"}


def reduction(reducer, dtype):
    family = REDUCERS[reducer]
    places = reducer.startswith("Place")
    return source(
        "reduction.cu",
        T=c_type(dtype),
        A={0: computed_type(dtype), 1: "int", 2: "Best"}[family],
        O="bool" if family == 1 else "long long" if places else c_type(dtype),
        REDUCER=reducer,
        FAMILY=family,
        LANES=256,
    )


def program(name, dtype):
    expression = EXPRESSIONS[name]
    output = DType.of("bool") if expression.mask else dtype
    return Program(
        f"r0 = {expression.form(dtype.kind)};",
        (dtype,) * expression.operands,
        (False,) * expression.operands,
        (output,),
        expression.parameters,
    )


def kinds(expression):
    """A dtype for each form of an expression."""
    named = {Kind.FLOAT: "float16", Kind.INT: "int8", Kind.UINT: "uint64", Kind.BOOL: "bool"}
    for kind, name in named.items():
        if any(kind in kinds for kinds, _ in expression.forms):
            yield DType.of(name)


def elementwise_sources():
    for name, expression in EXPRESSIONS.items():
        for dtype in kinds(expression):
            yield f"{name}-{dtype}", dense_source(program(name, dtype))


def sources_of_all_dtypes():
    for dtype in STORED:
        yield f"dense-{dtype}", dense_source(program("equal", dtype))
        yield f"strided-{dtype}", strided_source(program("equal", dtype), 4, wide=False, packs=True)
        cast = Program(
            f"r0 = convert<{computed_type(dtype)}>(x0);",
            (DType.of("float64"),),
            (True,),
            (dtype,),
        )
        yield f"cast-{dtype}", dense_source(cast)
        yield f"creation-{dtype}", source("creation.cu", T=c_type(dtype))
        key = KEYS[dtype.itemsize]
        keyed = {"T": c_type(dtype), "K": key, "KEYS": "uint64", "EQUAL_ZEROS": 0}
        yield f"keys-{dtype}", source("sorting.cu", **keyed, **dict.fromkeys(FLOATING[dtype], 1))


def sources_of_numbers():
    for dtype in STORED:
        if not dtype.is_bool:
            yield f"sum-{dtype}", reduction("Sum", dtype)
            scan = {"T": c_type(dtype), "S": computed_type(dtype), "OPERATION": "Larger"}
            yield f"scan-{dtype}", source("scan.cu", **scan)
        if dtype.is_integer:
            yield f"matmul-{dtype}", source("integer_matmul.cu", T=c_type(dtype))
            gather = {"E": "float", "I": c_type(dtype), "SELECTS": 0, "GATHERS": 1}
            yield f"gather-{dtype}", source("indexing.cu", **gather)


def sources_of_floats():
    wide = program("add", DType.of("float32"))
    yield "wide", strided_source(wide, 64, wide=True, packs=False)
    for reducer in REDUCERS:
        yield reducer, reduction(reducer, DType.of("bfloat16"))
    for dtype in FLOATS:
        for name in ROW_KERNELS:
            rows = {"T": c_type(dtype), "LANES": 32, "TARGET": "uint64", f"HAS_{name}": 1}
            yield f"{name}-rows-{dtype}", source("rows.cu", **rows)
        width = {"float64": 53, "float32": 24, "float16": 11, "bfloat16": 8}[dtype.name]
        yield f"random-{dtype}", source("random.cu", T=c_type(dtype), WIDTH=width)
        windows = {"T": c_type(dtype), "S": computed_type(dtype), "D": 2}
        for name in ("columns_of", "images_of"):
            yield f"{name}-{dtype}", source("convolution.cu", **windows, **{f"HAS_{name}": 1})
        yield f"optimizer-{dtype}", source("optimizer.cu", T=c_type(dtype))


def sources_of_words():
    for wide in ("int", "unsigned int", "int64", "uint64", "float", "double"):
        update = {"E": wide, "I": "int", "SELECTS": 1}
        yield f"add-{wide}", source("indexing.cu", **update)
        for join in ("Product", "Larger", "Smaller"):
            yield f"{join}-{wide}", source("indexing.cu", **update, JOIN=join)
    for word in KEYS.values():
        yield f"transposed-{word}", source("transposition.cu", E=word, R=3)
        yield f"assign-{word}", source("assignment.cu", E=word, I="int", SELECTS=0)
    yield "order", source("sorting.cu", O="int")


SOURCES = dict(
    itertools.chain(
        elementwise_sources(),
        sources_of_all_dtypes(),
        sources_of_numbers(),
        sources_of_floats(),
        sources_of_words(),
    )
)


def test_all_dtypes_have_a_name_in_the_kernels():
    assert {dtype.name for dtype in STORED} == set(C_TYPES)


@pytest.mark.parametrize("name", SOURCES)
def test_a_kernel_compiles(name):
    assert nvrtc.errors(SOURCES[name]) == ""
