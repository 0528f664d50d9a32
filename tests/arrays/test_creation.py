"""Making tensors of what there is: which dtype, which device, which graph, and what is refused."""

import array

import numpy as np
import pytest

import burn

CPU = "cpu"
DEVICES = burn.Device.enumerate()
EXACT = 1 + 1e-12
"""A number that float32 rounds to 1."""


def on(device, values, **options):
    return burn.asarray(values, device=device, **options)


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([1.5], "float32"),
        ([1, True], "int64"),
        ([1, 2.5], "float32"),
        ([[True], [False]], "bool"),
        ([], "float32"),
        ([1j, 1], "complex64"),
        (range(3), "int64"),
        ([np.array([EXACT])], "float64"),
        ([np.float64(EXACT)], "float64"),
        ((np.float64(EXACT), 1.5), "float64"),
        ([np.float32(1), 1.5], "float32"),
        ([np.float32(1), np.float64(EXACT)], "float64"),
        ([[np.int8(1), 2], [3, 4]], "int8"),
        ([np.int8(1), 2.5], "float32"),
        ([np.int8(1), np.uint8(2)], "int16"),
        ([np.int64(1), np.float32(2)], "float32"),
        ([np.float16(1), True], "float16"),
        ([np.uint64(1), np.int64(1), np.float32(1)], "float32"),
        ([np.bool_(True), 2], "int64"),
        ([np.array([1, 2], dtype="int32"), [3, 4]], "int32"),
        ([np.float32(1), 1j], "complex64"),
        (np.float64(EXACT), "float64"),
        (array.array("d", [EXACT]), "float64"),
        ([array.array("d", [EXACT])], "float64"),
        pytest.param(memoryview(np.ones(2, "int16")), "int16", id="memoryview"),
        ([burn.asarray(EXACT, dtype="float64", device=CPU)], "float64"),
        ([[burn.asarray(1, dtype="int8", device=CPU), 2]], "int8"),
        ([burn.asarray(1, dtype="int8", device=CPU), np.float64(EXACT)], "float64"),
        ([burn.asarray([1, 2], dtype="int32", device=CPU), [0.5, 1]], "float32"),
        ([burn.asarray(1.5, dtype="bfloat16", device=CPU), np.float16(1)], "float32"),
    ],
    ids=repr,
)
def test_arrays_in_a_list_give_it_their_dtype_and_python_numbers_the_default(values, dtype):
    x = on(CPU, values)
    assert x.dtype is burn.DType.of(dtype)
    assert dtype != "float64" or EXACT in np.ravel(x.tolist())


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([np.uint64(2**53 + 1), 5], [2**53 + 1, 5]),
        ([np.uint64(2**64 - 1), 0], [2**64 - 1, 0]),
        ([[np.int64(2**62 + 1)], [True]], [[2**62 + 1], [1]]),
        ([burn.asarray(2**62 + 1, device=CPU), 5], [2**62 + 1, 5]),
    ],
    ids=repr,
)
def test_integers_in_a_list_keep_every_digit(values, expected):
    assert on(CPU, values).tolist() == expected


def test_dtypes_that_do_not_meet_need_one_that_is_named():
    for values in ([np.uint64(1), np.int64(1)], [on(CPU, 1, dtype="uint64"), np.int64(1)]):
        with pytest.raises(burn.DTypeError, match=r"asarray.*uint64.*Cast"):
            on(CPU, values)
        assert on(CPU, values, dtype="int64").tolist() == [1, 1]


@pytest.mark.parametrize("device", DEVICES, ids=str)
def test_a_list_of_tensors_stays_on_their_device(device):
    x = on(device, [1.0, 2.0])
    with burn.default_device("strict"):
        made = burn.asarray([x, [3.0, 4.0], (x[0], 5), np.float32([6, 7])])
    assert made.device is device
    assert made.tolist() == [[1, 2], [3, 4], [1, 5], [6, 7]]
    assert on(CPU, [x[0], 3.0]).device is burn.Device(CPU)


def test_a_list_of_tensors_of_two_devices_is_refused():
    with pytest.raises(burn.DeviceMismatchError, match=r"asarray.*to_device"):
        burn.asarray([on(CPU, 1.0), on("strict", 1.0)])


@pytest.mark.parametrize("device", DEVICES, ids=str)
def test_a_list_of_tracked_tensors_is_tracked(device):
    w = on(device.autodiff(), [2.0, 3.0]).require_grad()
    y = burn.asarray([[w[0] * w[0], w[1]], [1.0, on(device, 5.0)]])
    assert y.is_tracked
    assert y.tolist() == [[4, 3], [1, 5]]
    assert w.grad((y * y).sum().backward()).tolist() == [32, 6]
    with pytest.raises(burn.AutodiffError, match="inner"):
        burn.asarray([w[0]], device=device)
    x = burn.zeros(2, device=device.autodiff())
    x[...] = [w[0], 2 * w[1]]
    assert w.grad(x.sum().backward()).tolist() == [1, 2]


def test_a_list_of_torchs_tensors_stays_where_they_are():
    torch = pytest.importorskip("torch")
    x = burn.asarray([torch.tensor(EXACT, dtype=torch.float64), 1.0])
    assert (x.dtype, x.device) == (burn.float64, burn.Device("torch/cpu"))
    with pytest.raises(burn.ExportError, match="detach"):
        burn.asarray([torch.tensor(1.0, requires_grad=True)])


@pytest.mark.parametrize(
    "values",
    [
        [on(CPU, 1.0), on(CPU, [1.0])],
        [on(CPU, [1.0, 2.0]), [1.0]],
        [[on(CPU, 1.0)], 2.0],
        [np.ones(2), 1.0],
    ],
    ids=repr,
)
def test_a_ragged_list_with_arrays_is_refused(values):
    with pytest.raises(burn.ShapeError, match="same length"):
        burn.asarray(values)


def test_a_list_that_contains_itself_is_refused():
    values = []
    values += [values, values]
    with pytest.raises(burn.ShapeError, match="may not contain itself"):
        burn.asarray(values)


def test_a_list_is_not_shared():
    for values in ([1.0], [on(CPU, 1.0)], [np.ones(2)]):
        with pytest.raises(burn.ArgumentError, match="without a copy"):
            on(CPU, values, copy=False)


MASKED = np.ma.masked_array([1.0, 2.0], mask=[False, True])


@pytest.mark.parametrize(
    "call",
    [
        lambda x: on(CPU, MASKED),
        lambda x: on(CPU, MASKED, dtype="int32"),
        lambda x: on(CPU, MASKED, copy=False),
        lambda x: on(CPU, [MASKED, [0.0, 0.0]]),
        lambda x: on(CPU, [1.0, np.ma.masked]),
        lambda x: on(CPU, [x, MASKED]),
        lambda x: burn.from_dlpack(MASKED),
        lambda x: burn.TensorData(MASKED),
        lambda x: burn.TensorData.of(MASKED),
        lambda x: x.__setitem__(slice(None), MASKED),
        lambda x: x.__setitem__(0, np.ma.masked),
        lambda x: x[np.ma.masked_array([0, 1], mask=[True, False])],
        lambda x: x[[0, np.ma.masked]],
    ],
)
def test_what_is_masked_is_not_taken_for_values(call):
    with pytest.raises(burn.BurnError, match=r"masked.*\.filled\(value\)"):
        call(on(CPU, [3.0, 4.0]))


def test_an_array_in_which_nothing_is_masked_is_taken():
    assert on(CPU, MASKED.filled(7)).tolist() == [1, 7]
    assert on(CPU, np.ma.masked_array([1.0, 2.0])).tolist() == [1, 2]


@pytest.mark.parametrize("device", DEVICES, ids=str)
@pytest.mark.parametrize("k", [4, 2**31, 2**32, 2**40, 2**70, -3, -(2**32), -(2**63), -(2**70)])
def test_a_diagonal_beyond_the_matrix_has_no_ones(device, k):
    ones = burn.ones((3, 4), device=device)
    assert burn.eye(3, 4, k=k, device=device).tolist() == [[0.0] * 4] * 3
    assert burn.tril(ones, k=k).tolist() == [[float(k > 0)] * 4] * 3
    assert burn.triu(ones, k=k).tolist() == [[float(k < 0)] * 4] * 3
    assert burn.tril_mask((3, 4), k=k, device=device).tolist() == [[k < 0] * 4] * 3
    assert burn.triu_mask((3, 4), k=k, device=device).tolist() == [[k > 0] * 4] * 3
    assert burn.diag_mask((3, 4), k=k, device=device).tolist() == [[True] * 4] * 3
    assert burn.linalg.trace(ones, offset=k).item() == 0.0


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ((3, 1.5), burn.OperandTypeError),
        ((2.0,), burn.OperandTypeError),
        (("2",), burn.OperandTypeError),
        ((-1,), burn.ShapeError),
        ((2, -1), burn.ShapeError),
    ],
)
def test_lengths_of_a_matrix_are_integers_from_0(arguments, error):
    with pytest.raises(error, match="eye"):
        burn.eye(*arguments, device=CPU)
    with pytest.raises(burn.OperandTypeError, match=r"eye: k .* 1\.5"):
        burn.eye(2, k=1.5, device=CPU)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "uint64"])
@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 1e20, -1e20])
@pytest.mark.parametrize("form", [float, np.float32, np.array, lambda value: [value, 1.0]])
def test_floats_that_no_integer_dtype_holds_are_refused(form, value, dtype):
    with pytest.raises(burn.ScalarRangeError):
        burn.asarray(form(value), dtype=dtype, device="cpu")


def test_floats_that_fit_an_integer_dtype_are_truncated():
    x = burn.asarray([127.9, -128.9, 0.5], dtype="int8", device="cpu")
    assert x.tolist() == [127, -128, 0]
    with pytest.raises(burn.ScalarRangeError, match="300 does not fit int8"):
        burn.asarray([300.7], dtype="int8", device="cpu")
    x = burn.asarray(x.astype("bfloat16").data().array, dtype="int16", device="cpu")
    assert x.tolist() == [127, -128, 0]


def test_the_gradient_of_full_reaches_its_value_and_no_range_drops_one():
    value = burn.asarray(2.5, device=burn.Device("cpu").autodiff()).require_grad()
    x = burn.full((3,), value)
    x[0] = 1.0
    assert value.grad((x * x).sum().backward()).tolist() == 10.0
    with pytest.raises(burn.AutodiffError, match=r"arange: stop is a tracked tensor.*detach"):
        burn.arange(value)
    with pytest.raises(burn.ShapeError, match=r"full: fill_value has the shape \(1,\)"):
        burn.full(3, burn.ones(1, device="cpu"))
    compiled = burn.compile(lambda value: burn.full((2,), value))
    assert [compiled(burn.asarray(number, device="cpu")).tolist() for number in (1, 2)] == [
        [1, 1],
        [2, 2],
    ]


def test_a_number_with_an_axis_is_no_number_of_a_range():
    for wrong in (burn.ones(1, device="cpu"), np.ones(1)):
        with pytest.raises(burn.OperandTypeError, match="start must be a number"):
            burn.linspace(wrong, 2.0, 3)
    assert burn.linspace(np.asarray(1.5), 2.5, 2, device="cpu").tolist() == [1.5, 2.5]


def test_a_large_index_is_shown_by_its_bits():
    with pytest.raises(burn.AxisError, match="index an integer of 16610 bits is out of range"):
        burn.ones(2, device="cpu")[10**5000]
