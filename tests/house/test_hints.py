"""Hints of errors name what there is."""

import ast
import functools
import re
from pathlib import Path

import burn
from burn.testing.hint_names import unknown_names

CORE = Path(burn.__file__).parent

ELSEWHERE = {
    "burn_backends": "a function that a plugin has",
    "copy_context": "of contextvars",
    "filled": "of masked arrays of NumPy",
    "flatnonzero": "of NumPy",
    "shuffle": "of datasets of Hugging Face",
}
"""Names in hints that are not burn's, and whose they are."""


@functools.cache
def hints():
    """Every hint in the code of burn, and where it stands; values in f-strings are left out."""
    found = []
    for path in sorted(CORE.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        constants = {
            target.id: node.value
            for node in tree.body
            if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None
            for target in getattr(node, "targets", None) or [node.target]
            if isinstance(target, ast.Name)
        }
        for node in ast.walk(tree):
            for keyword in node.keywords if isinstance(node, ast.Call) else ():
                if keyword.arg == "hint":
                    where = f"{path.relative_to(CORE)}:{node.lineno}"
                    found.append((where, text_of(keyword.value, constants)))
    return found


def text_of(node, constants):
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join([text_of(value, constants) for value in node.values])
    if isinstance(node, ast.BinOp):
        return text_of(node.left, constants) + text_of(node.right, constants)
    if isinstance(node, ast.IfExp):
        return f"{text_of(node.body, constants)}; {text_of(node.orelse, constants)}"
    if isinstance(node, ast.Name) and node.id in constants:
        return text_of(constants[node.id], {})
    return ""


def test_a_hint_names_only_what_there_is():
    found = [
        f"{where}: {name}"
        for where, text in hints()
        for name in unknown_names(text)
        if name not in ELSEWHERE
    ]
    assert found == []


def test_every_suggestion_of_a_name_is_made_by_one_function():
    users = [
        path.relative_to(CORE).as_posix()
        for path in sorted(CORE.rglob("*.py"))
        if re.search("did you mean", path.read_text(encoding="utf-8"), re.IGNORECASE)
    ]
    assert set(users) == {"public_calls.py", "testing/_check_selection.py"}  # the latter in a test


def test_a_name_that_is_not_there_is_noticed():
    assert unknown_names("Use burn.where, burn.no_such or .astype()") == ["burn.no_such"]
    assert unknown_names("Call x.detached(), or .dequantise()") == ["detached", "dequantise"]
    assert unknown_names("burn.nn.functional.relux() is for that") == ["burn.nn.functional.relux"]
    assert len(hints()) > 700
