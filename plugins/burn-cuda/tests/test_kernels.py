"""Every kernel is accepted by NVIDIA's own compiler, which needs no GPU."""

import itertools
from dataclasses import replace

import nvrtc
import pytest

from burn.plugin_api import (
    DTYPE_CODES,
    STEPS,
    UNIFORM_BITS,
    DType,
    GraphIr,
    Kind,
    Role,
    Target,
    c_type_of,
    complex64,
    complex128,
    float32,
    float64,
    planned,
    step_formula,
)
from burn_cuda.attention import attention_tiles
from burn_cuda.dialect import code_of, code_of_step
from burn_cuda.expressions import EXPRESSIONS
from burn_cuda.kernels import C_TYPES, c_type, compiler_options, computed_type, core_source, source
from burn_cuda.kernels.elementwise import Program, dense_source, strided_source
from burn_cuda.softmax import row_shape
from burn_cuda.usage import STORED

pytestmark = pytest.mark.skipif(
    nvrtc.library() is None, reason="NVRTC is not installed: pip install nvidia-cuda-nvrtc"
)

FLOATS = [dtype for dtype in STORED if dtype.is_float]
REDUCERS = {
    **dict.fromkeys(("Sum", "Mean", "Product"), 0),
    **dict.fromkeys(("Any", "All"), 1),
    **dict.fromkeys(("Maximum", "Minimum", "ArgMax", "ArgMin"), 2),
    "SquaredDeviations": 3,
}
ROW_KERNELS = (
    *("softmax", "softmax_grad", "log_softmax", "log_softmax_grad", "layer_norm"),
    *("layer_norm_grad", "rms_norm", "cross_entropy", "cross_entropy_grad"),
    *("layer_norm_grad_rows", "attention_weights", "attention_slopes"),
)
ONLY_IN_REGISTERS = ("layer_norm_grad_rows", "attention_weights", "attention_slopes")
REDUCTIONS = [
    f"HAS_{name}"
    for name in (
        *("whole_rows", "part_rows", "whole_columns", "part_columns", "combine_parts", "columns"),
    )
]
FLOATING = {dtype: ("FLOATING",) if dtype.is_float else () for dtype in STORED}
KEYS = {1: "unsigned char", 2: "unsigned short", 4: "unsigned int", 8: "uint64"}


def reduction(reducer, dtype, in_packs=1):
    family = REDUCERS[reducer]
    is_index = reducer.startswith("Arg")
    return source(
        "reduction.cu",
        T=c_type(dtype),
        A={0: computed_type(dtype), 1: "int", 2: "Extremum", 3: "Moments"}[family],
        O="bool" if family == 1 else "long long" if is_index else c_type(dtype),
        REDUCER=reducer,
        FAMILY=family,
        LANES=256,
        IN_PACKS=in_packs,
        **dict.fromkeys(REDUCTIONS, 1),
    )


def program(name, dtype):
    expression = EXPRESSIONS[name]
    return expression.program(dtype, (False,) * expression.operands)


def kinds(expression):
    """A dtype for each form of an expression."""
    named = {Kind.FLOAT: "float16", Kind.INT: "int8", Kind.UINT: "uint64", Kind.BOOL: "bool"}
    named[Kind.COMPLEX] = "complex64"
    for kind, name in named.items():
        if expression.takes(kind):
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
        if dtype.is_complex:
            continue
        yield f"creation-{dtype}", source("creation.cu", T=c_type(dtype))
        key = KEYS[dtype.itemsize]
        keyed = {"T": c_type(dtype), "K": key, "KEYS": "uint64", "EQUAL_ZEROS": 0}
        yield f"keys-{dtype}", source("sorting.cu", **keyed, **dict.fromkeys(FLOATING[dtype], 1))


def sources_of_complex_numbers():
    for dtype in (complex64, complex128):
        part = dtype.component
        for name in ("multiply", "divide", "pow", "acosh"):
            yield f"{name}-{dtype}", dense_source(program(name, dtype))
        number = Program("r0 = x0 * x1;", (dtype, dtype), (False, True), (dtype,))
        yield f"number-{dtype}", strided_source(number, 2, wide=False, packs=True)
        join = Program(f"r0 = {dtype}(x0, x1);", (part, part), (False, False), (dtype,))
        yield f"join-{dtype}", dense_source(join)
        halves = Program("r0 = x0.re; r1 = x0.im;", (dtype,), (False,), (part, part))
        yield f"parts-{dtype}", dense_source(halves)
        narrow = Program("r0 = convert<complex64>(x0);", (dtype,), (False,), (complex64,))
        yield f"narrow-{dtype}", dense_source(narrow)


def windows(name, dtype, **types):
    """A kernel on windows."""
    types |= {"TARGET": types["TYPE"], "WINDOW_ITEMS": "GROUP_ITEMS", f"HAS_{name}": 1}
    return core_source("windows.c", c_type_of(dtype), types)


def sources_of_numbers():
    for dtype in STORED:
        if not dtype.is_bool and not dtype.is_complex:
            yield f"sum-{dtype}", reduction("Sum", dtype)
            scan = {"T": c_type(dtype), "S": computed_type(dtype), "OPERATION": "Maximum"}
            tile = {"PACKS": 2, "WIDTH": 16 // dtype.itemsize}
            yield f"scan-{dtype}", source("scan.cu", **scan, **tile)
            types = {"OP": 2, "TYPE": DTYPE_CODES[dtype.name], "HAS_scan": 1}
            yield f"scan-lines-{dtype}", core_source("scan.c", c_type_of(dtype), types)
            yield f"max_pool-{dtype}", windows("max_pool", dtype, TYPE=DTYPE_CODES[dtype.name])
            keys = {"TYPE": DTYPE_CODES[dtype.name], "TARGET": 4, "HAS_search_sorted": 1}
            yield f"search-{dtype}", core_source("searching.c", c_type_of(dtype), keys)
        if dtype.is_integer:
            yield f"matmul-{dtype}", source("integer_matmul.cu", T=c_type(dtype))
            types = {"TYPE": 7, "INDEX_TYPE": DTYPE_CODES[dtype.name], "HAS_gather": 1}
            yield f"gather-{dtype}", core_source("indexing.c", "ulong", types)


OPTIONAL_STATES = {"velocities", "largest_moments"}


def step_formulas():
    """Each step with all states and options, and without."""
    for (name, op), is_full in itertools.product(STEPS.items(), (True, False)):
        attributes = {
            key: is_full if attribute.role is Role.FLAG else 0.5 * is_full
            for key, attribute in op.attributes.items()
        }
        attributes["step"] = 3
        optional = OPTIONAL_STATES | ({"first_moments"} if name == "rmsprop_step" else set())
        lists = [[0] if is_full or operand not in optional else [] for operand in op.operands]
        given = {key: value for key, value in attributes.items() if key in op.attributes}
        yield f"{name}-{is_full}", step_formula(name, lists, given)


def sources_of_floats():
    wide = program("add", DType.of("float32"))
    yield "wide", strided_source(wide, 64, wide=True, packs=False)
    for reducer in REDUCERS:
        for in_packs in (0, 1):
            yield f"{reducer}-{in_packs}", reduction(reducer, DType.of("bfloat16"), in_packs)
    for dtype in FLOATS:
        for name in ROW_KERNELS:
            for n in (3, 8192, 1 << 17):
                shape = row_shape(n, dtype.itemsize)
                if not shape.packs and name in ONLY_IN_REGISTERS:
                    continue
                rows = {"LANES": shape.lanes, "PACKS": shape.packs, "WIDTH": shape.width}
                rows |= {"T": c_type(dtype), "TARGET": "uint64", f"HAS_{name}": 1}
                yield f"{name}-{n}-{dtype}", source("rows.cu", **rows)
        for entry in ("random_uniform", "random_normal"):
            drawn = {"WIDTH": UNIFORM_BITS[dtype], f"HAS_{entry}": 1}
            yield f"{entry}-{dtype}", core_source("random.c", c_type_of(dtype), drawn)
        for name in ("columns", "fold"):
            yield f"{name}-{dtype}", windows(name, dtype, TYPE=DTYPE_CODES[dtype.name])
        scatter = {
            "E": computed_type(dtype),
            "V": c_type(dtype),
            "I": "int",
            "SELECTS": 1,
            "PARTS": 1,
        }
        yield f"embedding_grad-{dtype}", source("indexing.cu", **scatter, LABELS=1)
        for name, formula in step_formulas():
            yield f"{name}-{dtype}", code_of_step(formula, dtype, 40).text


def sources_of_attention():
    for dtype in FLOATS:
        everything = dict.fromkeys(("HAS_MASK", "HAS_BIAS", "CAUSAL", "SOFTCAP"), 1)
        for number, tiles in enumerate(tiles_of(dtype)):
            given = {"T": c_type(dtype), "R": 2, **tiles.definitions}
            yield f"attention-{number}-{dtype}", source("attention.cu", **given)
            yield f"scores-{number}-{dtype}", source("attention.cu", **given, **everything)
            yield f"folded-{number}-{dtype}", source("attention.cu", **given, FOLDED=1, CAUSAL=1)
            yield f"sums-{number}-{dtype}", source("attention.cu", **given, STATISTICS=1)
        if dtype.itemsize == 2:
            for wide, columns in itertools.product((64, 128), (16, 32)):
                given = {"T": c_type(dtype), "R": 2, "D": wide, "V": wide, "COLUMNS": columns}
                given["BLOCKS"] = 2
                name = f"{wide}-{columns}-{dtype}"
                yield f"query-slopes-{name}", source("attention_gradient.cu", **given, **everything)
                yield f"key-slopes-{name}", source("attention_gradient.cu", **given, OF_KEYS=1)


def sources_of_sampling():
    for dtype in FLOATS:
        code, kind = DTYPE_CODES[dtype.name], c_type_of(dtype)
        for mode, zeros, reflects in itertools.product(range(3), range(2), range(2)):
            rules = {"TYPE": code, "MODE": mode, "ZEROS": zeros, "REFLECTS": reflects}
            text = core_source("sampling.c", kind, rules | {"ALIGN_CORNERS": mode % 2})
            yield f"sampling-{mode}-{zeros}-{reflects}-{dtype}", text
        for taps in (0, 3, -1):
            types = {"SOURCE": code, "TARGET": code}
            for axis in range(3):
                types |= {f"W{axis}": int(taps != 0), f"K{axis}": taps}
                types[f"SOME{axis}"] = int(taps < 0)
            yield f"taps-{taps}-{dtype}", core_source("resampling.c", kind, types)


CODE_KERNELS = ("quantize", "dequantize", "quantize_runs", "quantize_all")
CODES = {"int8": (8, 0), "int4": (4, 0), "int2": (2, 0), "e4m3": (8, 1)}
"""Bits of a code, and whether it is a float."""


def sources_of_quantization():
    for dtype, (codes, (bits, is_float)) in itertools.product(FLOATS, CODES.items()):
        unit = max(16 // dtype.itemsize, 32 // bits)
        given = {"X": c_type(dtype), "S": "bfloat16", "CODE": is_float, "BITS": bits}
        given |= {"UNIT": unit, "LANES": 64, "PACKS": 2}
        names = {f"HAS_{name}": 1 for name in CODE_KERNELS}
        yield f"codes-{codes}-{dtype}", source("quantization.cu", **given, **names)
        if dtype is float64:
            continue
        rows = {"X": c_type(dtype), "T": "bfloat16" if dtype is float32 else c_type(dtype)}
        rows |= {"PLANES": 3 if dtype is float32 else 1, "BITS": bits, "FLOAT8": is_float}
        for block, most in itertools.product((0, 64), (1, 8, 32)):
            rows |= {"S": "float16", "BLOCK": block, "SCALES": 512 // bits // block if block else 1}
            rows |= {"MAX_ROWS": most, "TILES": 2, "STAGES": 2, "SPLIT": 8, "RESIDENT": 512}
            rows["DIRECT"] = int(bits == 8 and not block and most == 1)
            name = f"quantized_rows-{codes}-{block}-{most}-{dtype}"
            yield name, source("quantized_rows.cu", **rows)
        scaled = {"A": "int", "SB": "float", "HAS_scale_product": 1}
        yield f"scale_product-{codes}-{dtype}", source("quantization.cu", **given, **scaled)


def tiles_of(dtype):
    """Tiles for few and for many features, with tensor cores and without."""
    cases = itertools.product((3, 64, 128), ((7, 0), (9, 0)))
    tiles = [attention_tiles(most, most, dtype.itemsize, capability) for most, capability in cases]
    return [tile for tile in tiles if tile is not None]


def sources_of_words():
    for wide in ("int", "unsigned int", "int64", "uint64", "float", "double"):
        update = {"E": wide, "I": "int", "SELECTS": 1, "PARTS": 1}
        yield f"add-{wide}", source("indexing.cu", **update)
        for join in ("Product", "Maximum", "Minimum"):
            yield f"{join}-{wide}", source("indexing.cu", **update, JOIN=join)
    channels = ("channel_moments", "normalized_channels", "channel_sums", "channel_gradients")
    for name in (*channels, "whole_channels", "whole_channel_gradients"):
        for dtype, each in ((DType.of("float16"), 4), (float64, 1)):
            code = DTYPE_CODES[dtype.name]
            types = {"TYPE": code, "STATISTIC_TYPE": code, "EACH": each, "LANES": 256}
            text = core_source("channels.c", c_type_of(dtype), {**types, f"HAS_{name}": 1})
            yield f"{name}-{dtype}", text
    transforms = ("input_and_weight_tiles", "input_and_gradient_tiles", "output_tiles")
    for name in (*transforms, "weight_sums"):
        yield name, source("winograd.cu", T="float", **{f"HAS_{name}": 1})
    for word in KEYS.values():
        yield f"transposed-{word}", source("transposition.cu", E=word, R=3, SIDE=32, EACH=1)
        yield f"assign-{word}", source("assignment.cu", E=word, I="int", SELECTS=0, PARTS=2)
    for dtype in (float32, float64):
        yield f"recurrent-{dtype}", source("recurrent.cu", T=c_type(dtype))
    for name, examples in itertools.product(("lstm_layer", "lstm_layer_back"), (1, 4)):
        sizes = {"HIDDEN": 128, "EXAMPLES": examples, "RECORDS": 1, f"HAS_{name}": 1}
        yield f"{name}-{examples}", source("lstm.cu", T="float", **sizes)
    yield "transposed-long", source("transposition.cu", E="Word128", R=3, SIDE=32, EACH=1)
    yield "order", source("sorting.cu", O="int")


SOURCES = dict(
    itertools.chain(
        elementwise_sources(),
        sources_of_all_dtypes(),
        sources_of_complex_numbers(),
        sources_of_numbers(),
        sources_of_floats(),
        sources_of_attention(),
        sources_of_sampling(),
        sources_of_quantization(),
        sources_of_words(),
    )
)


def generated(text, *, relaxed=False):
    """The source of the one kernel of a program, and the instructions."""
    target = Target(frozenset([float32, float64]), lambda _: False)
    graph = replace(GraphIr.from_text(text), relaxed=relaxed)
    (call,) = planned(graph, target).steps
    source = code_of(call.kernel, {}, "kernel").text
    return nvrtc.assembly(source, compiler_options(contracts=call.kernel.relaxed))


OPERANDS = "input %0: TYPE[8, 64]\ninput %1: TYPE[8, 64]\ninput %2: TYPE[8, 64]\n"
PRODUCT = OPERANDS + "%3: TYPE[8, 64] = multiply(%0, %1)\n"
CHAIN = PRODUCT + "%4: TYPE[8, 64] = add(%3, %2)\noutput %4"
SUM = PRODUCT + "%4: TYPE[8] = sum(%3, axis=(1,), dtype=TYPE)\noutput %4"


@pytest.mark.parametrize(("dtype", "suffix"), [("float32", "f32"), ("float64", "f64")])
def test_a_product_and_a_sum_are_rounded_separately_unless_a_reduction_adds(dtype, suffix):
    fused = f"fma.rn.{suffix}"
    assert fused not in generated(CHAIN.replace("TYPE", dtype))
    assert fused in generated(CHAIN.replace("TYPE", dtype), relaxed=True)
    assert fused in generated(SUM.replace("TYPE", dtype))


@pytest.mark.parametrize("name", ["axpby", "lerp"])
def test_eager_products_and_sums_are_rounded_separately(name):
    options = compiler_options(contracts=False)
    assert "fma.rn.f32" not in nvrtc.assembly(dense_source(program(name, float32)), options)


def test_all_dtypes_have_a_name_in_the_kernels():
    assert {dtype.name for dtype in STORED} == set(C_TYPES)


@pytest.mark.together("name", SOURCES)
def test_a_kernel_compiles(name):
    assert nvrtc.errors(SOURCES[name]) == ""
