"""`burn.tree`: containers of tensors."""

from collections import OrderedDict, defaultdict
from typing import NamedTuple

import pytest

import burn
from burn import tree


class Point(NamedTuple):
    x: object
    y: object


class Box:
    def __init__(self, content, name):
        self.content, self.name = content, name


tree.register(Box, lambda box: ((box.content,), box.name), lambda name, parts: Box(*parts, name))

TREES = {
    "a leaf": (5, [5]),
    "none": (None, []),
    "a list": ([1, [2, []], 3], [1, 2, 3]),
    "a tuple": ((1, (2,), ()), [1, 2]),
    "a named tuple": (Point(1, Point(2, 3)), [1, 2, 3]),
    "a dict": ({"b": 1, "a": {"c": 2}}, [1, 2]),
    "an ordered dict": (OrderedDict(b=1, a=2), [1, 2]),
    "keys of all sorts": ({1: "x", (2, 3): "y", None: "z"}, ["x", "y", "z"]),
    "objects": ([{1, 2}, "text"], [{1, 2}, "text"]),
}


@pytest.mark.parametrize("name", TREES)
def test_a_tree_is_its_leaves_and_its_structure(name):
    given, leaves = TREES[name]
    found, structure = tree.flatten(given)
    assert found == leaves == tree.leaves(given)
    made = tree.unflatten(structure, found)
    assert made == given
    assert type(made) is type(given)
    assert tree.flatten(made)[1] == structure


def test_containers_are_new_and_leaves_are_the_same():
    leaf = object()
    given = {"a": [leaf]}
    made = tree.map(lambda item: item, given)
    assert made == given
    assert made is not given
    assert made["a"] is not given["a"]
    assert made["a"][0] is leaf


def test_structures_are_equal_if_the_containers_agree():
    def structure(one):
        return tree.flatten(one)[1]

    assert structure([1, (2, 3)]) == structure(["a", ("b", None or 0)])
    for other in ([1, [2, 3]], [1, (2,)], (1, (2, 3)), [1, 2], [1, (2, None)]):
        assert structure([1, (2, 3)]) != structure(other)
    assert structure({"a": 1}) != structure({"b": 1})
    assert structure({"a": 1}) != structure(OrderedDict(a=1))
    assert structure(Box(1, "x")) == structure(Box(2, "x"))
    assert structure(Box(1, "x")) != structure(Box(1, "y"))


def test_map_takes_leaves_of_several_trees():
    added = tree.map(lambda x, y: x + y, {"a": 1, "b": [2]}, {"b": [20], "a": 10})
    assert added == {"a": 11, "b": [22]}
    assert list(added) == ["a", "b"]
    deeper = tree.map(lambda x, y: (x, y), [1, 2], ["a", {"b": 3}])
    assert deeper == [(1, "a"), (2, {"b": 3})]
    point = tree.map(lambda x: x * 2, Point(1, 2))
    assert isinstance(point, Point)
    assert point == Point(2, 4)
    assert tree.map(lambda x: x, None) is None


def test_registered_classes_are_containers():
    box = tree.map(lambda x: x + 1, Box([1, 2], "name"))
    assert (box.content, box.name) == ([2, 3], "name")

    class Sub(Box):
        pass

    sub = Sub(1, "a subclass is registered on its own")
    assert tree.leaves([sub]) == [sub]
    with pytest.raises(burn.ArgumentError, match=r"tree\.register: Box is registered already"):
        tree.register(Box, lambda box: ((), None), lambda _, parts: None)
    with pytest.raises(burn.ArgumentError, match="registered already"):
        tree.register(dict, lambda item: ((), None), lambda _, parts: None)


def test_subclasses_that_are_not_registered_are_leaves():
    given = defaultdict(int, a=1)
    assert tree.leaves([given]) == [given]


def test_tensors_are_leaves():
    x = burn.ones((2, 3), device="cpu")
    assert tree.leaves({"x": [x]}) == [x]
    assert tree.map(lambda tensor: tensor.shape, [x]) == [(2, 3)]


MISUSES = {
    "too few leaves": (
        lambda: tree.unflatten(tree.flatten([1, 2])[1], [1]),
        r"tree\.unflatten: 1 leaves for a structure of 2",
    ),
    "too many leaves": (
        lambda: tree.unflatten(tree.flatten([1, 2])[1], [1, 2, 3]),
        "3 leaves for a structure of 2",
    ),
    "other lengths": (
        lambda: tree.map(max, [1, 2], [1, 2, 3]),
        r"tree\.map: a list of 3 where a list of 2 is expected",
    ),
    "other classes": (lambda: tree.map(max, [1, 2], (1, 2)), "a tuple of 2 where a list of 2"),
    "other keys": (lambda: tree.map(max, {"a": 1}, {"b": 1}), "a dict of 'b' where a dict of 'a'"),
    "a leaf": (lambda: tree.map(max, {"a": 1}, 3), "int where a dict of 'a' is expected"),
    "no function": (lambda: tree.map([1, 2], [1, 2]), "takes a function"),
}


@pytest.mark.parametrize("name", MISUSES)
def test_errors_say_what_differs(name):
    call, message = MISUSES[name]
    with pytest.raises(burn.BurnError, match=message):
        call()
