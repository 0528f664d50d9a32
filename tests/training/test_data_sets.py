"""Datasets are sequences of examples, and `collate` joins examples to batches."""

import copy
import dataclasses
import enum
import fractions
import io
import itertools
import pickle
import re
from collections import Counter, OrderedDict, UserDict
from typing import NamedTuple

import ml_dtypes
import numpy as np
import pytest
import torch
from hypothesis import given, strategies as st
from PIL import Image

import burn
from burn.data import Arrays, Concatenated, Mapped, Subset, Windows, collate, split
from burn.data.mapped_files import reduced_map
from burn.data.uploading import upload_one

DEVICES = [device for device in burn.Device.enumerate() if device.backend_name != "strict"]


class Point(NamedTuple):
    x: object
    y: object


@dataclasses.dataclass(frozen=True)
class Example:
    image: object
    label: object

    def __post_init__(self):
        if isinstance(self.image, np.ndarray) and self.image.ndim != 1:
            raise ValueError("an example has a vector")


class Color(enum.IntEnum):
    RED = 1
    BLUE = 2


def square(x):
    return x * x


def values(x):
    return x.tolist() if hasattr(x, "tolist") else list(x)


IMAGES = np.arange(24, dtype=np.float32).reshape(6, 2, 2)
LABELS = np.arange(6) * 10

DATASETS = {
    "one array": (lambda: Arrays(LABELS), [0, 10, 20, 30, 40, 50]),
    "subset": (lambda: Subset(LABELS, [4, 0, -1]), [40, 0, 50]),
    "subset of a subset": (lambda: Subset(Subset(LABELS, [4, 0, 2]), [2, 0]), [20, 40]),
    "slice": (lambda: Arrays(LABELS)[1:5:2], [10, 30]),
    "concatenated": (lambda: Concatenated(Arrays(LABELS[:2]), [1], range(2)), [0, 10, 1, 0, 1]),
    "mapped": (lambda: Mapped(Arrays(LABELS[:3]), square), [0, 100, 400]),
    "empty": (lambda: Subset(LABELS, []), []),
}


@pytest.mark.parametrize("name", DATASETS)
def test_datasets_are_sequences(name):
    make, expected = DATASETS[name]
    data = make()
    assert len(data) == len(expected)
    assert list(data) == expected
    for index in range(-len(expected), len(expected)):
        assert data[index] == expected[index]
        assert data[np.int64(index)] == expected[index]
    for index in (len(expected), -len(expected) - 1):
        with pytest.raises(IndexError, match="out of range"):
            data[index]
    with pytest.raises(TypeError, match="index must be an integer"):
        data["a"]
    assert type(data).__name__ in repr(data)


@pytest.mark.parametrize("name", DATASETS)
def test_datasets_give_a_whole_batch_at_once_as_one_by_one(name):
    make, expected = DATASETS[name]
    data = pickle.loads(pickle.dumps(make()))
    indices = [*range(len(expected)), *range(-len(expected), 0)][::-1]
    examples = data.__getitems__(indices)
    assert len(examples) == len(indices)
    assert [int(example) for example in examples] == [expected[index] for index in indices]
    if indices:
        assert collate(examples).tolist() == [expected[index] for index in indices]
    for wrong in ([len(expected)], [0, -len(expected) - 1]):
        with pytest.raises(IndexError, match="out of range"):
            data.__getitems__(wrong)
    with pytest.raises(TypeError, match="indices are integers"):
        data.__getitems__([0.5])
    with pytest.raises(TypeError, match="flatnonzero"):
        data.__getitems__(np.ones(3, bool))


def test_arrays_have_the_containers_that_they_were_given_in():
    assert collate(Arrays(IMAGES).__getitems__([1, 3])).tolist() == IMAGES[[1, 3]].tolist()
    images, labels = collate(Arrays(IMAGES, LABELS).__getitems__([1, 3]))
    assert images.tolist() == IMAGES[[1, 3]].tolist()
    assert labels.tolist() == [10, 30]
    for data in (Arrays(image=IMAGES, label=LABELS), Arrays({"image": IMAGES, "label": LABELS})):
        assert data[2]["label"] == 20
        examples = data.__getitems__([1, 3])
        assert [list(example) for example in examples] == [["image", "label"]] * 2
        assert examples[-1]["label"] == 30
        assert [example["label"] for example in examples[:1]] == [10]
        batch = collate(examples)
        assert list(batch) == ["image", "label"]
        assert batch["image"].tolist() == images.tolist()
    assert repr(Arrays(image=IMAGES, label=LABELS)) == (
        "Arrays(image=float32[6, 2, 2], label=int64[6])"
    )


def test_a_batch_of_arrays_has_memory_of_its_own():
    for array in (IMAGES.copy(), np.asfortranarray(IMAGES), IMAGES[:, ::-1]):
        batch = collate(Arrays(array).__getitems__([0, 1]))
        assert not np.shares_memory(batch, array)
        batch[...] = -1
        assert array.min() >= 0


def test_a_batch_of_arrays_is_what_its_examples_are(subtests):
    columns = {
        "float32": IMAGES,
        "bfloat16": IMAGES.astype(ml_dtypes.bfloat16),
        "bool": LABELS > 20,
        "big endian": LABELS.astype(">i4"),
        "torch": torch.arange(6),
        "torch bfloat16": torch.arange(6).to(torch.bfloat16),
        "strings": np.array(list("abcdef")),
        "objects": np.array(["a", None, 1, "b", 2, 3], dtype=object),
    }
    data = Arrays(columns)
    batch = collate(data.__getitems__([5, 0, 0]))
    for name in columns:
        with subtests.test(name):
            expected = [data[5][name], data[0][name], data[0][name]]
            assert values(batch[name]) == [
                values(item) if np.ndim(item) else item for item in expected
            ]
    assert batch["bfloat16"].dtype == batch["torch bfloat16"].dtype == ml_dtypes.bfloat16


def test_memory_mapped_arrays_stay_in_the_file(tmp_path):
    np.save(tmp_path / "x.npy", np.arange(20).reshape(10, 2))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    data = Arrays(mapped)
    batch = collate(data.__getitems__([9, 0]))
    assert batch.tolist() == [[18, 19], [0, 1]]
    assert type(batch) is np.ndarray
    assert batch.flags.writeable
    assert isinstance(data[0], np.memmap)
    windows = Windows(mapped, 3, step=3)
    assert collate(windows.__getitems__([2])).tolist() == [[[12, 13], [14, 15], [16, 17]]]
    del mapped, data, windows
    assert type(collate([np.load(tmp_path / "x.npy", mmap_mode="r")])) is np.ndarray


@pytest.mark.parametrize("device", DEVICES, ids=str)
def test_tensors_are_taken_from_on_their_device(device):
    data = Arrays(image=burn.asarray(IMAGES, device=device), label=LABELS)
    examples = data.__getitems__([5, -6])
    batch = collate(examples)
    assert batch["image"].device is device
    assert batch["image"].tolist() == IMAGES[[5, 0]].tolist()
    assert examples[0]["image"].tolist() == data[5]["image"].tolist() == IMAGES[5].tolist()
    windows = Windows(burn.asarray(LABELS.astype("int32"), device=device), 3)
    assert collate(windows.__getitems__([0, 3])).tolist() == [[0, 10, 20], [30, 40, 50]]
    assert windows[-1].tolist() == [30, 40, 50]
    assert collate([windows[0], windows[1]]).tolist() == [[0, 10, 20], [10, 20, 30]]


@pytest.mark.parametrize(("length", "step"), [(1, 1), (3, 1), (3, 2), (3, 3), (6, 1), (2, 5)])
def test_windows_cover_the_array(length, step):
    array = np.arange(12).reshape(6, 2)
    windows = Windows(array, length, step=step)
    expected = [array[start : start + length].tolist() for start in range(0, 7 - length, step)]
    assert [window.tolist() for window in windows] == expected
    assert collate(windows.__getitems__(range(len(windows)))).tolist() == expected


def test_bad_datasets_are_refused_with_what_to_do():
    cases = [
        (lambda: Arrays(), burn.ArgumentError, "needs arrays"),
        (lambda: Arrays({}), burn.ArgumentError, "needs arrays"),
        (lambda: Arrays(LABELS, label=LABELS), burn.ArgumentError, "all with names"),
        (lambda: Arrays([1, 2]), burn.OperandTypeError, "numpy.asarray"),
        (lambda: Arrays(np.float32(1)), burn.ShapeError, "no axis"),
        (lambda: Arrays(LABELS, LABELS[1:]), burn.ShapeError, r"arrays\[0\] has 6"),
        (lambda: Arrays(x=LABELS, y=LABELS[1:]), burn.ShapeError, "x has 6, y has 5"),
        (lambda: Arrays(np.ma.array([1, 2], mask=[0, 1])), burn.ArgumentError, "masked"),
        (lambda: Subset(iter([1]), [0]), burn.OperandTypeError, "has a length"),
        (lambda: Subset([1, 2], [2]), burn.AxisError, "out of range"),
        (lambda: Subset([1, 2], [True, False]), burn.OperandTypeError, "flatnonzero"),
        (lambda: Concatenated(), burn.ArgumentError, "at least one"),
        (lambda: Concatenated([1], iter([1])), burn.OperandTypeError, "has a length"),
        (lambda: Mapped([1], 3), burn.OperandTypeError, "function"),
        (lambda: Mapped(iter([1]), square), burn.OperandTypeError, "has a length"),
        (lambda: Windows(LABELS, 7), burn.ShapeError, "shorter"),
        (lambda: Windows(LABELS, 0), burn.ArgumentError, "length is 0"),
        (lambda: Windows(LABELS, 2, step=0), burn.ArgumentError, "step is 0"),
        (lambda: Windows(list(LABELS), 2), burn.OperandTypeError, "no array"),
        (lambda: Subset([1, 2], 1), burn.OperandTypeError, "takes the examples 0 and 2"),
        (lambda: Subset([1, 2], [[1], [1, 2]]), burn.OperandTypeError, "indices are integers"),
        (lambda: Subset(np.array(1), [0]), burn.OperandTypeError, "has a length"),
        (lambda: collate(3), burn.OperandTypeError, "a batch of one"),
        (lambda: split([1], [1], stratify=[[1], [1, 2]]), burn.ShapeError, "for each example"),
        (lambda: split([1, 2], [1], stratify=["a", None]), burn.OperandTypeError, "compared"),
        (lambda: split([1, 2], 0.8), burn.OperandTypeError, r"\[0.8, 0.2\]"),
        (lambda: split([1, 2], []), burn.ArgumentError, "no share"),
        (lambda: split([1, 2], [0.5, 0.4]), burn.ArgumentError, "add up to 0.9"),
        (lambda: split([1, 2], [2, 1]), burn.ArgumentError, "add up to 3"),
        (lambda: split([1, 2], [1.5, -0.5]), burn.ArgumentError, "-0.5"),
        (lambda: split([1, 2], [float("nan"), 1]), burn.ArgumentError, "nan"),
        (lambda: split([1, 2], ["a", 1]), burn.OperandTypeError, "'a'"),
        (lambda: split([1, 2], [0.5, 0.5], stratify=[1]), burn.ShapeError, "2 examples"),
        (lambda: split(iter([1]), [1.0]), burn.OperandTypeError, "has a length"),
        (lambda: split([1], [1.0], seed=-1), burn.ArgumentError, "seed"),
    ]
    for make, error, words in cases:
        with pytest.raises(error, match=words):
            make()


@given(
    st.integers(0, 300),
    st.lists(st.floats(0, 1), min_size=1, max_size=5).filter(lambda item: sum(item) > 0.01),
    st.integers(0, 2**64 - 1),
    st.booleans(),
)
def test_splits_have_exact_sizes_and_every_example_once(length, weights, seed, stratified):
    shares = [weight / sum(weights) for weight in weights]
    labels = np.arange(length) % 3 if stratified else None
    parts = split(range(length), shares, seed=seed, stratify=labels)
    assert sorted(itertools.chain(*parts)) == list(range(length))
    for part, share in zip(parts, shares, strict=True):
        assert abs(len(part) - share * length) < 1 + 1e-6
    again = split(range(length), shares, seed=seed, stratify=labels)
    assert [list(item) for item in again] == [list(part) for part in parts]


def test_splits_by_numbers_of_examples_and_by_shares():
    assert [len(part) for part in split(range(10), [7, 2, 1])] == [7, 2, 1]
    assert [len(part) for part in split(range(10), [1 / 3, 1 / 3, 1 / 3])] == [4, 3, 3]
    assert [len(part) for part in split(range(10), [1])] == [10]
    assert [len(part) for part in split(range(1797), [0.8, 0.2])] == [1438, 359]
    assert list(split(range(100), [0.5, 0.5], seed=1)[0]) != list(split(range(100), [0.5, 0.5])[0])


@pytest.mark.parametrize("shares", [[0.8, 0.2], [0.5, 0.3, 0.2], [0.34, 0.33, 0.33]])
def test_stratified_splits_have_their_share_of_every_label(shares):
    generator = np.random.default_rng(0)
    labels = generator.choice(list("abcde"), size=503, p=[0.5, 0.3, 0.1, 0.06, 0.04])
    counts = Counter(labels.tolist())
    parts = split(labels, shares, stratify=labels.astype(object))  # as of a column of polars
    for part, share in zip(parts, shares, strict=True):
        found = Counter(part)
        for label, count in counts.items():
            assert abs(found[label] - share * count) <= 1.5
        assert list(part) != sorted(part)  # in random order


def test_collate_joins_every_kind_of_field():
    image = Image.fromarray(np.arange(12, dtype=np.uint8).reshape(2, 2, 3))

    def example(number):
        return {
            "int": number,
            "float": number / 2,
            "bool": number > 0,
            "complex": 1j * number,
            "enum": Color.BLUE,
            "string": f"s{number}",
            "bytes": b"b",
            "none": None,
            "array": np.full(3, number, np.float64),
            "scalar": np.float16(number),
            "bfloat16": ml_dtypes.bfloat16(number),
            "tensor": burn.asarray([number], device="cpu"),
            "torch": torch.tensor([number, 0]),
            "torch 0-d": torch.tensor(number),
            "image": image,
            "tokens": [number, 2, 3],
            "matrix": [[1.0], [2.0]],
            "scalars": [np.int8(1), np.int8(2)],
            "no tokens": [],
            "pair": (number, "a"),
            "list": ["a", number],
            "point": Point(number, [0.5]),
            "ordered": OrderedDict(b=1, a=2),
            "user": UserDict(c=number),
            "dataclass": Example(np.full(2, number), number),
            "object": fractions.Fraction(number),
        }

    batch = collate([example(0), example(1)])
    assert list(batch) == list(example(0))
    found = {
        name: (values(value), str(value.dtype))
        for name, value in batch.items()
        if hasattr(value, "dtype")
    }
    assert found == {
        "int": ([0, 1], "int64"),
        "float": ([0.0, 0.5], "float64"),
        "bool": ([False, True], "bool"),
        "complex": ([0j, 1j], "complex128"),
        "enum": ([2, 2], "int64"),
        "array": ([[0.0] * 3, [1.0] * 3], "float64"),
        "scalar": ([0.0, 1.0], "float16"),
        "bfloat16": ([0.0, 1.0], "bfloat16"),
        "tensor": ([[0], [1]], "int64"),
        "torch": ([[0, 0], [1, 0]], "int64"),
        "torch 0-d": ([0, 1], "int64"),
        "image": ([np.asarray(image).tolist()] * 2, "uint8"),
        "tokens": ([[0, 2, 3], [1, 2, 3]], "int64"),
        "matrix": ([[[1.0], [2.0]]] * 2, "float64"),
        "scalars": ([[1, 2]] * 2, "int8"),
        "no tokens": ([[], []], "float64"),
    }
    assert batch["string"] == ["s0", "s1"]
    assert batch["bytes"] == [b"b", b"b"]
    assert batch["none"] is None
    assert isinstance(batch["tensor"], burn.Tensor)
    assert isinstance(batch["pair"], tuple)
    assert (values(batch["pair"][0]), batch["pair"][1]) == ([0, 1], ["a", "a"])
    assert (batch["list"][0], values(batch["list"][1])) == (["a", "a"], [0, 1])
    assert isinstance(batch["point"], Point)
    assert values(batch["point"].y) == [[0.5], [0.5]]
    assert type(batch["ordered"]) is OrderedDict
    assert list(batch["ordered"]) == ["b", "a"]
    assert type(batch["user"]) is dict
    assert isinstance(batch["dataclass"], Example)
    assert values(batch["dataclass"].image) == [[0, 0], [1, 1]]
    assert batch["object"] == [0, 1]


STRUCTURES = st.recursive(
    st.sampled_from(["number", "array", "text", "none"]),
    lambda children: st.one_of(
        st.dictionaries(st.text(max_size=2), children, max_size=3),
        st.lists(children, max_size=3).map(tuple),
        st.builds(Point, children, children),
        st.builds(Example, children, children),
    ),
    max_leaves=8,
)


def filled(structure, number):
    """An example of a structure, whose leaves tell the number."""
    if isinstance(structure, dict):
        return {name: filled(part, number) for name, part in structure.items()}
    if isinstance(structure, Example):
        return Example(filled(structure.image, number), filled(structure.label, number))
    if isinstance(structure, Point):
        return Point(*[filled(part, number) for part in structure])
    if isinstance(structure, tuple):
        return tuple([filled(part, number) for part in structure])
    leaves = {"number": number, "array": np.full(2, number), "text": f"{number}", "none": None}
    return leaves[structure]


def example_of(structure, batch, index):
    """One of the examples that a batch was made of."""
    assert type(batch) is type(structure) or isinstance(structure, str)
    if isinstance(structure, dict):
        return {name: example_of(part, batch[name], index) for name, part in structure.items()}
    if isinstance(structure, Example):
        image = example_of(structure.image, batch.image, index)
        return Example(image, example_of(structure.label, batch.label, index))
    if isinstance(structure, tuple):
        children = [
            example_of(part, two, index) for part, two in zip(structure, batch, strict=True)
        ]
        return type(structure)(*children) if isinstance(structure, Point) else tuple(children)
    return None if structure == "none" else batch[index]


@given(STRUCTURES, st.integers(1, 5))
def test_a_batch_has_the_containers_of_its_examples(structure, count):
    batch = collate([filled(structure, number) for number in range(count)])
    device = burn.Device("cpu")
    for found in (batch, upload_one(batch, device, owned=True)):
        for number in range(count):
            example = example_of(structure, found, number)
            assert repr(leaves(example)) == repr(leaves(filled(structure, number)))


def leaves(x):
    """The leaves of an example, as numbers and strings."""
    if isinstance(x, dict):
        return [leaves(item) for item in x.values()]
    if isinstance(x, Example):
        return [leaves(x.image), leaves(x.label)]
    if isinstance(x, tuple):
        return [leaves(item) for item in x]
    return x.tolist() if hasattr(x, "tolist") else x


def test_collate_joins_examples_that_are_no_containers():
    assert collate([1, 2]).tolist() == [1, 2]
    assert collate(["a", "b"]) == ["a", "b"]
    assert collate([None, None]) is None
    assert collate((np.zeros(2), np.ones(2))).tolist() == [[0, 0], [1, 1]]
    assert collate([{}, {}]) == {}
    assert collate([(), ()]) == ()


def test_numbers_of_several_kinds_have_the_widest():
    assert str(collate([True, 2]).dtype) == "int64"
    assert str(collate([1, 2.5]).dtype) == "float64"
    assert str(collate([1, 2j]).dtype) == "complex128"
    assert collate([2**63, 1]).tolist() == [2**63, 1]
    assert str(collate([1.5, np.float32(2)]).dtype) == "float32"  # of the array, as in an operation
    assert str(collate([np.float32(2), 1.5]).dtype) == "float32"
    assert str(collate([np.int8([1]), np.int16([2])]).dtype) == "int16"


def test_keys_of_dicts_may_come_in_any_order():
    batch = collate([{"a": 1, "b": "x"}, {"b": "y", "a": 2}])
    assert values(batch["a"]) == [1, 2]
    assert batch["b"] == ["x", "y"]


CIRCULAR = []
CIRCULAR.append(CIRCULAR)

BAD_EXAMPLES = {
    "shapes": (
        [{"x": np.zeros(3)}, {"x": np.zeros(4)}],
        burn.ShapeError,
        "example['x'] has shape (3,) in one example and (4,) in another. Pad or cut them",
    ),
    "ranks": ([(np.zeros(1),), (np.zeros(()),)], burn.ShapeError, "example[0] has shape (1,)"),
    "tensors": (
        [burn.zeros(2, device="cpu"), burn.zeros(3, device="cpu")],
        burn.ShapeError,
        "example has shape (2,)",
    ),
    "tokens": ([Point(1, [1, 2]), Point(1, [1])], burn.ShapeError, "example.y has shape (2,)"),
    "ragged": ([[[1], [1, 2]]], burn.ShapeError, "lists of different lengths"),
    "None": ([{"x": 1}, {"x": None}], burn.OperandTypeError, "example['x'] is None in 1 of 2"),
    "None first": ([None, "a"], burn.OperandTypeError, "None in 1 of 2"),
    "keys": ([{"a": 1}, {"b": 1}], burn.OperandTypeError, "a dict of 'a' in one example"),
    "lengths": ([(1, 2), (1,)], burn.OperandTypeError, "a tuple of 2 in one example"),
    "containers": ([(1, 2), "ab"], burn.OperandTypeError, "of type str in another"),
    "arrays": ([np.zeros(2), "ab"], burn.OperandTypeError, "of type str in another"),
    "numbers": ([1, "ab"], burn.OperandTypeError, "example"),
    "lists": ([[1, 2], ["a", "b"]], burn.OperandTypeError, "a list of something else"),
    "integers": ([2**64], burn.ScalarRangeError, "numbers of example"),
    "masked": ([np.ma.array([1, 2], mask=[True, False])], burn.ArgumentError, "mask"),
    "gradients": ([torch.ones(1, requires_grad=True)], burn.ExportError, "example"),
    "dtypes": ([np.zeros(1, "M8[s]"), np.zeros(1)], burn.OperandTypeError, "example"),
    "itself": ([CIRCULAR], burn.ShapeError, "A list may not contain itself"),
    "none": ([], burn.ArgumentError, "no example"),
}


@pytest.mark.parametrize("name", BAD_EXAMPLES)
def test_examples_that_do_not_fit_are_refused_by_the_name_of_the_field(name):
    examples, error, words = BAD_EXAMPLES[name]
    with pytest.raises(error, match=re.escape(words)) as found:
        collate(examples)
    assert str(found.value).startswith("collate")


def test_datasets_and_batches_can_be_copied_and_pickled():
    data = Concatenated(
        Mapped(Arrays(LABELS), square),
        Windows(IMAGES[0, 0], 1),
        split(Arrays(LABELS), [0.5, 0.5])[1],
    )
    for other in (pickle.loads(pickle.dumps(data)), copy.deepcopy(data)):
        assert [values(item) for item in other] == [values(array) for array in data]
        assert repr(other) == repr(data)
    batch = pickle.loads(pickle.dumps(collate([(1, 2.5)])))
    assert type(batch[0]) is type(collate([1]))


@pytest.mark.parametrize("mode", ["r", "r+", "w+", "c"])
def test_memory_mapped_arrays_are_pickled_as_maps_of_their_file(tmp_path, mode):
    path = tmp_path / "x.npy"
    values = np.arange(3000, dtype=np.int16).reshape(100, 30)
    mapped = np.memmap(path, values.dtype, "w+", offset=64, shape=values.shape)
    mapped[...] = values
    if mode != "w+":
        mapped.flush()
        mapped = np.memmap(path, values.dtype, mode, offset=64, shape=values.shape)
    views = [mapped, mapped[10:], mapped[::-3, 4:], mapped.T, mapped[7], mapped[:0]]
    parts = [values, values[10:], values[::-3, 4:], values.T, values[7], values[:0]]
    for view, expected in zip(views, parts, strict=True):
        data = pickled(view)
        again = pickle.loads(data)
        assert np.array_equal(again, expected)
        if mode == "c":  # changes are not in the file
            assert len(data) > view.nbytes
        elif view.size:
            assert len(data) < 1000
            assert isinstance(again.base, np.memmap)
    copied = mapped[[3, 1]]  # lies in no file
    assert np.array_equal(pickle.loads(pickled(copied)), values[[3, 1]])


def pickled(x):
    """The pickle of an object as worker processes get it."""
    data = io.BytesIO()
    pickler = pickle.Pickler(data, protocol=5)
    pickler.dispatch_table = {np.memmap: reduced_map}
    pickler.dump(x)
    return data.getvalue()
