"""The array API standard: every name and signature of it, and what an array object has to be."""

import inspect

import array_api_strict
import numpy as np
import pytest

import burn

array_api_strict.set_array_api_strict_flags(api_version="2025.12")

MISSING: set[str] = set()
"""Names that are still to be written."""

DIFFERENT: set[str] = set()
"""Functions whose signature is still to be completed."""

NOT_OF_THE_STANDARD = {
    "ArrayAPIStrictFlags",
    "Device",
    "ModuleType",
    "get_array_api_strict_flags",
    "reset_array_api_strict_flags",
    "set_array_api_strict_flags",
}
"""What array_api_strict has beside the standard."""

NAMES = sorted(
    {name for name in dir(array_api_strict) if not name.startswith("_")} - NOT_OF_THE_STANDARD
)
FUNCTIONS = [name for name in NAMES if inspect.isfunction(getattr(array_api_strict, name))]
METHODS = sorted(
    name
    for name, member in vars(array_api_strict._array_object.Array).items()
    if (name.startswith("__") or not name.startswith("_"))
    and (inspect.isfunction(member) or isinstance(member, property))
    and name not in ("__new__", "__repr__", "__str__", "__array__", "__buffer__", "__hash__")
)


def tensor(values, **options):
    return burn.asarray(values, device="cpu", **options)


def parameters(function, *, method=False):
    """Kind, name (of what may be given by name) and default of each parameter."""
    found = list(inspect.signature(function).parameters.values())
    result = []
    for item in found[1:] if method else found:
        named = item.kind in (item.KEYWORD_ONLY, item.POSITIONAL_OR_KEYWORD)
        default = item.default
        if type(default).__name__ == "Undef":
            default = None  # array_api_strict tells "not given" from None
        result.append((item.kind, item.name if named else None, default))
    return result


def compare(ours, standard):
    """Ours takes every call that the standard has; what it requires there may be optional here.

    It may have further keywords.
    """
    count = len(standard)
    assert len(ours) >= count
    for kind, _, default in ours[count:]:
        assert kind is inspect.Parameter.KEYWORD_ONLY
        assert default is not inspect.Parameter.empty
    for (kind, name, default), (its_kind, its_name, its_default) in zip(
        ours[:count], standard, strict=True
    ):
        assert name == its_name
        assert kind == its_kind
        if its_default is not inspect.Parameter.empty:
            assert default == its_default
            assert type(default) is type(its_default)


@pytest.mark.together("name", NAMES)
def test_burn_has_every_name_of_the_standard(name):
    assert hasattr(burn, name) or name in MISSING, name


@pytest.mark.together("name", [name for name in FUNCTIONS if name not in MISSING | DIFFERENT])
def test_a_function_has_the_signature_of_the_standard(name):
    compare(parameters(getattr(burn, name)), parameters(getattr(array_api_strict, name)))


@pytest.mark.parametrize("extension", ["linalg", "fft"])
def test_an_extension_has_every_function_of_the_standard(extension):
    standard = getattr(array_api_strict, extension)
    for name in standard.__all__:
        ours = getattr(getattr(burn, extension), name)
        compare(parameters(ours), parameters(getattr(standard, name)))


@pytest.mark.parametrize("name", METHODS)
def test_a_tensor_has_every_member_of_the_standard(name):
    ours = getattr(burn.Tensor, name)
    standard = getattr(array_api_strict._array_object.Array, name)
    if isinstance(standard, property):
        assert isinstance(ours, property)
        return
    its = parameters(standard, method=True)
    # The standard has a keyword-only stream here, array_api_strict takes it by position too.
    if name == "to_device":
        its = [its[0], (inspect.Parameter.KEYWORD_ONLY, *its[1][1:])]
    compare([(kind, named, default) for kind, named, default in parameters(ours, method=True)], its)


def test_the_signature_of_a_dunder_is_not_that_of_an_attribute():
    for name in ("__array_namespace__", "__dlpack__", "__dlpack_device__", "__complex__"):
        assert inspect.isfunction(getattr(burn.Tensor, name))


def test_the_namespace_says_which_version_it_follows():
    assert burn.__array_api_version__ == "2025.12"
    x = tensor([1.0])
    assert x.__array_namespace__() is burn
    assert x.__array_namespace__(api_version="2023.12") is burn
    with pytest.raises(ValueError, match="2019"):
        x.__array_namespace__(api_version="2019.12")


def test_the_namespace_describes_itself():
    info = burn.__array_namespace_info__()
    assert set(info.capabilities()) >= {
        "boolean indexing",
        "data-dependent shapes",
        "max dimensions",
    }
    assert info.default_device() is burn.Device.default()
    assert isinstance(info.devices(), tuple)
    assert info.default_device() in info.devices()
    assert info.default_dtypes(device="cpu") == {
        "real floating": burn.float32,
        "complex floating": burn.complex64,
        "integral": burn.int64,
        "indexing": burn.int64,
    }
    dtypes = info.dtypes(device="cpu")
    assert dtypes["uint16"] is burn.uint16
    assert "bfloat16" not in dtypes
    assert info.dtypes(device="cpu", kind="bool") == {"bool": burn.bool}
    assert set(info.dtypes(device="cpu", kind=("real floating", "signed integer"))) == {
        *("float32", "float64", "int8", "int16", "int32", "int64"),
    }


@pytest.mark.parametrize(
    "dtype", [dtype for dtype in burn.DType.members() if dtype is not burn.bfloat16], ids=str
)
def test_limits_of_dtypes_are_numpys(dtype):
    if dtype.is_integer:
        ours, numpys = burn.iinfo(dtype), np.iinfo(dtype.numpy)
        assert (ours.bits, ours.min, ours.max) == (numpys.bits, numpys.min, numpys.max)
        assert ours.dtype is dtype
        with pytest.raises(burn.DTypeError, match="iinfo"):
            burn.finfo(dtype)
    elif not dtype.is_bool:
        ours, numpys = burn.finfo(dtype), np.finfo(dtype.numpy)
        for name in ("bits", "eps", "max", "min", "smallest_normal"):
            assert getattr(ours, name) == getattr(numpys, name)
        assert type(ours.max) is float
    else:
        for function in (burn.finfo, burn.iinfo):
            with pytest.raises(burn.DTypeError):
                function(dtype)


def test_limits_are_those_of_a_tensors_dtype_too():
    assert burn.finfo(tensor([1.0])).dtype is burn.float32
    assert burn.finfo(burn.complex128).dtype is burn.float64
    assert burn.iinfo(tensor([1])).bits == 64
    assert burn.finfo(burn.bfloat16).eps == 2.0**-7


KINDS = (
    *("bool", "signed integer", "unsigned integer", "integral", "real floating"),
    *("complex floating", "numeric"),
)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "dtype", [dtype for dtype in burn.DType.members() if dtype is not burn.bfloat16], ids=str
)
def test_kinds_of_dtypes_are_numpys(dtype, kind):
    assert burn.isdtype(dtype, kind) == np.isdtype(dtype.numpy, kind)
    assert burn.isdtype(dtype, (kind, dtype))
    assert dtype.kind == dtype.numpy.kind
    assert dtype.itemsize == dtype.numpy.itemsize
    assert dtype.kind in "biufc"


STANDARD = [dtype for dtype in burn.DType.members() if dtype.name not in ("float16", "bfloat16")]


@pytest.mark.together("first", STANDARD, ids=str)
@pytest.mark.parametrize("second", STANDARD, ids=str)
def test_dtypes_meet_where_the_standard_says(first, second):
    strict = array_api_strict
    try:
        expected = strict.result_type(getattr(strict, first.name), getattr(strict, second.name))
    except TypeError:
        return  # not defined by the standard
    names = {getattr(strict, item.name): item for item in STANDARD}
    assert burn.result_type(first, second) is names[expected]
    assert burn.can_cast(first, second) == (names[expected] is second)


def test_numbers_matter_only_where_their_kind_is_above():
    assert burn.result_type(burn.int8, 3) is burn.int8
    assert burn.result_type(burn.float64, 3, 1.5, True) is burn.float64
    assert burn.result_type(burn.float64, 1j) is burn.complex128
    assert burn.result_type(burn.float16, 1j) is burn.complex64
    assert burn.result_type(tensor([1]), 1.5) is burn.float32
    assert burn.result_type(tensor([True]), 2) is burn.int64
    assert burn.result_type(tensor([1]), "float64") is burn.float64
    with pytest.raises(burn.OperandTypeError):
        burn.result_type(1, 2.0)
    with pytest.raises(burn.DTypeError, match="result_type"):
        burn.result_type(burn.uint64, burn.int8)
    with pytest.raises(burn.ArgumentError, match="real floating"):
        burn.isdtype(burn.int8, "whole")
    assert not burn.can_cast(burn.uint64, burn.int64)


def test_shapes_and_tensors_broadcast():
    assert burn.broadcast_shapes((2, 1), (3,), ()) == (2, 3)
    with pytest.raises(burn.ShapeError, match="broadcast_shapes"):
        burn.broadcast_shapes((2,), (3,))
    a, b = burn.broadcast_arrays(tensor([[1], [2]]), tensor([3, 4, 5]))
    assert a.tolist() == [[1, 1, 1], [2, 2, 2]]
    assert b.tolist() == [[3, 4, 5], [3, 4, 5]]
    assert burn.broadcast_arrays() == ()


def test_angles_in_degrees_and_radians():
    x = tensor([0.0, 90.0, -180.0], dtype="float64")
    assert np.allclose(burn.deg2rad(x).numpy(), np.deg2rad(x.numpy()))
    assert np.allclose(burn.rad2deg(burn.deg2rad(x)).numpy(), x.numpy())


@pytest.mark.parametrize("name", ["floor", "ceil", "trunc", "round"])
def test_integers_stay_what_they_are_when_rounded(name):
    x = tensor([1, -2], dtype="int16")
    y = getattr(burn, name)(x)
    assert y.dtype is burn.int16
    assert y.tolist() == [1, -2]


def test_the_copy_of_a_tensor_is_not_seen_through_the_other():
    x = tensor([1.0, 2.0])
    for copy in (
        burn.asarray(x, copy=True),
        x.astype(burn.float32),
        burn.positive(x),
        +x,
        burn.clip(x),
        burn.reshape(x, (2,), copy=True),
    ):
        copy[0] = 9.0
        assert x.tolist() == [1.0, 2.0]
    assert burn.asarray(x) is x
    assert x.astype(burn.float32, copy=False) is x
    assert burn.asarray(x, copy=False) is x
    with pytest.raises(ValueError, match="copy"):
        burn.asarray(x, dtype="float64", copy=False)


def test_memory_of_an_array_is_copied_unless_it_shall_be_shared():
    array = np.arange(3.0)
    copied = tensor(array)
    shared = tensor(array, copy=False)
    array[0] = 7.0
    assert copied.tolist() == [0.0, 1.0, 2.0]
    assert shared.tolist() == [7.0, 1.0, 2.0]
    assert tensor(memoryview(array), copy=False).tolist() == [7.0, 1.0, 2.0]
    for values, options in (
        ([1.0, 2.0], {}),
        (1.0, {}),
        (array, {"dtype": "float32"}),
        (array.astype(">f8"), {}),
    ):
        with pytest.raises(ValueError, match="copy"):
            tensor(values, copy=False, **options)


def test_an_array_of_another_library_becomes_a_tensor():
    strict = array_api_strict.asarray([1, 2], dtype=array_api_strict.int16)
    assert tensor(strict).dtype is burn.int16
    assert tensor(strict).tolist() == [1, 2]
    assert burn.from_dlpack(strict, device="cpu").tolist() == [1, 2]
    assert tensor(b"ab".__class__(b"\x01\x02")[0]).tolist() == 1
    assert tensor(bytearray(b"\x01\x02")).tolist() == [1, 2]


def test_dlpack_shares_memory_both_ways():
    array = np.arange(6.0).reshape(2, 3)
    x = burn.from_dlpack(array[:, ::2])
    array[0, 0] = 5.0
    assert x.tolist() == [[5.0, 2.0], [3.0, 5.0]]
    back = np.from_dlpack(x)
    assert np.shares_memory(back, array)
    assert not back.flags.writeable
    own = burn.from_dlpack(array, copy=True)
    array[0, 0] = 6.0
    assert own.tolist()[0][0] == 5.0
    assert burn.from_dlpack(x, copy=False).tolist()[0][0] == 6.0
    assert x.__dlpack_device__() == (1, 0)


def test_an_export_that_cannot_be_marked_is_a_copy():
    class Old:
        """A consumer's view of a producer from before version 1.0 of DLPack."""

        def __init__(self, x, **options):
            self.capsule = x.__dlpack__(**options)

        def __dlpack__(self, **options):
            return self.capsule

        def __dlpack_device__(self):
            return (1, 0)

    x = tensor([1.0, 2.0])
    for options, shared in (
        ({}, False),
        ({"copy": True}, False),
        ({"copy": False}, True),
        ({"max_version": (1, 0)}, True),
        ({"max_version": (1, 0), "copy": True}, False),
        ({"max_version": (1, 0), "dl_device": (1, 0)}, True),
    ):
        array = np.from_dlpack(Old(x, **options))
        assert array.tolist() == [1.0, 2.0]
        assert np.shares_memory(array, x.numpy()) == shared, options


def test_what_dlpack_cannot_carry_is_a_buffer_error():
    for call in (
        lambda: tensor([1.0]).__dlpack__(dl_device=(2, 0)),
        lambda: tensor([1.0, 2.0])[::-1].__dlpack__(max_version=(1, 0), copy=False),
        lambda: burn.from_dlpack(np.ones(2, ">f8")),
        lambda: tensor([1.0]).__dlpack__(stream=1),
        lambda: (
            burn.asarray([1.0], device=burn.Device("cpu").autodiff()).require_grad().__dlpack__()
        ),
    ):
        with pytest.raises(BufferError) as caught:
            call()
        assert isinstance(caught.value, burn.BurnError)
    with pytest.raises(TypeError, match="from_dlpack"):
        burn.from_dlpack([1.0])


def test_numbers_of_python_meet_tensors_on_either_side():
    x = tensor([1.0, 4.0])
    assert burn.subtract(1, x).tolist() == [0.0, -3.0]
    assert burn.subtract(x, 1).tolist() == [0.0, 3.0]
    assert burn.less(2.0, x).tolist() == [False, True]
    assert burn.maximum(x, 2).tolist() == [2.0, 4.0]
    assert burn.atan2(0.0, x).tolist() == [0.0, 0.0]
    assert burn.logical_and(x > 2, True).tolist() == [False, True]
    assert burn.logical_or(False, x > 2).tolist() == [False, True]
    assert burn.bitwise_and(3, tensor([5, 6])).tolist() == [1, 2]
    assert burn.where(x > 2, 1, x).dtype is burn.float32


def test_numpy_leaves_operators_to_the_tensor():
    x = tensor([1.0, 2.0])
    assert isinstance(np.float64(2.0) * x, burn.Tensor)
    with pytest.raises(TypeError):
        np.ones(2) + x


def test_a_tensor_is_a_number_where_it_has_one_element():
    assert complex(tensor(2.0)) == 2.0 + 0.0j
    assert int(tensor(-2.7)) == -2
    assert float(tensor([3])) == 3.0
    assert [10, 20, 30][tensor(1)] == 20
    for value in (float("nan"), float("inf")):
        with pytest.raises(OverflowError):
            int(tensor(value))


@pytest.mark.parametrize("dtype", ["int8", "uint16", "float64", "bool", "complex64"])
def test_membership_is_numpys(dtype):
    rows = tensor([[0, 1, 5], [3, 2, 1]], dtype=dtype)
    for values in ([1, 3], [], [[9, 1], [0, 0]]):
        others = tensor(np.asarray(values), dtype=dtype)
        expected = np.isin(rows.numpy(), others.numpy())
        assert burn.isin(rows, others).tolist() == expected.tolist()
        assert burn.isin(rows, others, invert=True).tolist() == (~expected).tolist()
    assert burn.isin(rows, 1).tolist() == (rows.numpy() == 1).tolist()
    assert burn.isin(1, rows).item()
    nan = tensor([float("nan"), 1.0])
    assert burn.isin(nan, nan).tolist() == [False, True]
