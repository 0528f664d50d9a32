"""Wrong calls of public functions: made of valid ones, and what a device says to them.

Each argument of a valid call in turn is replaced by something else: None, text, a number that is
too large, a tensor of another shape. Such a call either works, or raises an error of burn that
names the function; and it does the same on every device, with the same words.
"""

from __future__ import annotations

import hashlib
import inspect
import itertools
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from burn import namespace as burn
from burn.devices import Device
from burn.errors import BurnError
from burn.functions.common import dispatch
from burn.testing._check import Failure
from burn.testing._wrong_values import A_COMPLEX_NUMBER, WRONG, Wrong, constant
from burn.testing.function_checks import Trial, flat, main_kind, reference_subject, tried_dtypes
from burn.testing.function_samples import (
    FunctionCall,
    FunctionSamples,
    WrongCall,
    public_function,
)
from burn.testing.hint_names import unknown_names
from burn.testing.reference_backend import reference_devices
from burn.testing.subject import Subject

__all__ = ["MutatedCall", "check_mutated_calls", "check_wrong_call", "mutated_calls"]

_TOO_LARGE: Final = {
    "arange": ("-10**9",),
    "fori_loop": ("-10**9", "2**70", "10**5000"),
    "while_loop": ("infinity",),
}
"""By function, what is no mistake there, and would take hours or gigabytes."""

_TAKES_ANY: Final = ("tree.", "Tensor.__eq__", "Tensor.__ne__")
"""Functions whose arguments may be any objects."""

_CALLS_OTHERS: Final = (
    *("apply_op", "cond", "eval_shape", "fori_loop", "jvp", "scan", "tree.map", "vjp"),
    "while_loop",
)
"""Functions that call what they are given: an error may name that."""

_MAKE_FUNCTIONS: Final = (
    *("checkpoint", "compile", "grad", "hessian", "jacobian", "value_and_grad", "vmap"),
)
"""Functions that return functions, which check arguments against those of each call."""

_FORBIDDEN: Final = (
    "failed with",
    "cannot work with",
    "0x",
    "<function",
    "Traceback",
    "seed=",
)
"""What no message says: internals, addresses."""

_OPERATORS: Final = {
    "truediv": "divide",
    "floordiv": "floor_divide",
    "mod": "remainder",
    "sub": "subtract",
    "mul": "multiply",
    "lshift": "bitwise_left_shift",
    "rshift": "bitwise_right_shift",
    "and": "bitwise_and",
    "or": "bitwise_or",
    "xor": "bitwise_xor",
    "invert": "bitwise_invert",
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
    "neg": "negative",
    "pos": "positive",
    "getitem": "indexing",
    "setitem": "indexing",
    "index": "int",
}
"""What messages call an operator of tensors; others have the name of their function."""


@dataclass(frozen=True, eq=False)
class MutatedCall:
    """A valid call, one of whose arguments was replaced.

    Attributes
    ----------
    samples : FunctionSamples
        The function.
    one : FunctionCall
        The valid call.
    where : int or str
        Which argument: its position or its keyword; one more than there are adds one.
    wrong : Wrong
        What replaces it.
    """

    samples: FunctionSamples
    one: FunctionCall
    where: int | str
    wrong: Wrong

    def __str__(self) -> str:
        where = f"argument {self.where}" if isinstance(self.where, int) else self.where
        return f"burn.{self.samples.name} ({self.one.note}): {where} is {self.wrong.name}"

    @property
    def is_nonsense(self) -> bool:
        """Whether the function must refuse it."""
        if self.samples.name.startswith(_TAKES_ANY) or self.samples.name in _MAKE_FUNCTIONS:
            return False
        return self.wrong.is_nonsense or self.where in (_MISSPELT, _one_too_many(self.one, self))

    def is_possible(self, subject: Subject) -> bool:
        """Whether a device has the dtypes of the call."""
        if self.wrong.dtype is not None and not subject.supports(self.wrong.dtype):
            return False
        return bool(tried_dtypes(subject, self.samples, self.one))

    def outcome(self, subject: Subject) -> _Outcome:
        """What a device does with it."""
        trial = Trial(subject, self.samples, self.one, None)
        arguments, keywords = trial.map(trial.tensor)
        value = self.wrong.make(trial.device)
        if isinstance(self.where, int):
            arguments[self.where : self.where + 1] = [value]
        else:
            keywords[self.where] = value
        return _outcome(trial, arguments, keywords)


_MISSPELT: Final = "axiz"


def _one_too_many(one: FunctionCall, mutated: MutatedCall) -> int:
    signature = inspect.signature(public_function(mutated.samples.name))
    kinds = [parameter.kind for parameter in signature.parameters.values()]
    if inspect.Parameter.VAR_POSITIONAL in kinds:
        return -1
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    count = sum(kind in positional for kind in kinds)
    return count if count == len(one.arguments) else -1


@dataclass(frozen=True)
class _Outcome:
    """What came of a call: "" for `kind` if it worked, else the class of the error and its text."""

    kind: str
    text: str = ""
    is_burns: bool = False
    is_of_signature: bool = False
    hint: str = ""
    is_empty: bool = False


def mutated_calls(samples: FunctionSamples) -> Iterator[MutatedCall]:
    """The wrong calls of a function, in an order drawn from its name: the same in every run."""
    found = list(_all_mutated(samples))
    found.sort(key=lambda mutated_call: hashlib.sha256(str(mutated_call).encode()).digest())
    yield from found


def _all_mutated(samples: FunctionSamples) -> Iterator[MutatedCall]:
    skipped = _TOO_LARGE.get(samples.name, ())
    try:
        parameters = inspect.signature(public_function(samples.name)).parameters.values()
    except ValueError:  # a builtin
        return
    for sample in samples.samples:
        wheres: list[int | str] = [*range(len(sample.arguments) + 1)]
        wheres += dict.fromkeys([*_keywords(parameters, len(sample.arguments)), *sample.keywords])
        for where, wrong in itertools.product(wheres, WRONG):
            is_self = where == 0 and samples.name.startswith("Tensor.")
            if wrong.name not in skipped and not (is_self and not wrong.is_tensor):
                yield MutatedCall(samples, sample, where, wrong)
        yield MutatedCall(samples, sample, _MISSPELT, constant("a keyword that is none", 1))


def _keywords(parameters: Iterable[inspect.Parameter], count: int) -> Iterator[str]:
    """The parameters that a call with `count` positional arguments may name."""
    for index, parameter in enumerate(parameters):
        is_left = parameter.kind is parameter.POSITIONAL_OR_KEYWORD and index >= count
        if is_left or parameter.kind is parameter.KEYWORD_ONLY:
            yield parameter.name


def check_mutated_calls(
    subject: Subject, samples: FunctionSamples, start: int, stop: int | None
) -> None:
    """Make some of the wrong calls of a function.

    Parameters
    ----------
    subject : Subject
        The device.
    samples : FunctionSamples
        The function.
    start, stop : int
        Which of its `mutated_calls`.
    """
    complaints = []
    for mutated in itertools.islice(mutated_calls(samples), start, stop):
        if not mutated.is_possible(subject):
            continue
        found = mutated.outcome(subject)
        complaint = _complaint(samples.name, found)
        if not complaint and not found.kind and mutated.is_nonsense:
            complaint = "it was accepted"
        if not complaint and _is_comparable(samples, mutated.one, mutated.wrong.name):
            trial = Trial(subject, samples, mutated.one, None)
            complaint = _difference(found, mutated.outcome(reference_subject(trial)))
        if complaint:
            complaints.append(f"{mutated}: {complaint}")
    if complaints:
        raise Failure("\n".join(complaints))


def check_wrong_call(subject: Subject, samples: FunctionSamples, one: WrongCall) -> None:
    """Make a call that a sample says is refused."""
    sample = FunctionCall(one.note, one.arguments, one.keywords)
    if not tried_dtypes(subject, samples, sample):
        return
    trial = Trial(subject, samples, sample, None)
    arguments, keywords = trial.map(trial.tensor)
    found = _outcome(trial, arguments, keywords)
    what = f"burn.{samples.name} ({one.note})"
    if not found.kind:
        raise Failure(f"{what} was accepted")
    if found.kind != one.expected.__name__:
        raise Failure(f"{what} raised {found.kind}, not {one.expected.__name__}: {found.text}")
    complaint = _complaint(samples.name, found)
    if not complaint and _is_comparable(samples, sample):
        other = Trial(reference_subject(trial), samples, sample, None)
        complaint = _difference(found, _outcome(other, *other.map(other.tensor)))
    if complaint:
        raise Failure(f"{what}: {complaint}")


def _outcome(trial: Trial, arguments: Sequence[Any], keywords: dict[str, Any]) -> _Outcome:
    """Make a call and read what comes out, since the error of a device may come as late as that."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            results = flat(trial.made(arguments, keywords))
            tensors = [result for result in results if isinstance(result, burn.Tensor)]
            sizes = [dispatch.to_data(tensor).array.size for tensor in tensors]
            trial.device.sync()  # of a write to an argument
    except BurnError as error:
        text = _neutral(str(error), trial.device)
        return _Outcome(type(error).__name__, text, is_burns=True, hint=error.hint)
    except Exception as error:  # noqa: BLE001 — what it raises is what is tested
        of_signature = isinstance(error, TypeError) and _is_of_signature(trial, str(error))
        text = _neutral(str(error), trial.device)
        return _Outcome(type(error).__name__, text, is_of_signature=of_signature)
    return _Outcome("", is_empty=bool(sizes) and not any(sizes))


def _is_of_signature(trial: Trial, text: str) -> bool:
    """Whether Python says that a call does not fit the signature of the function that is tried."""
    if not _SIGNATURE.search(text):
        return False
    called = _CALLED.match(text)
    own = getattr(public_function(trial.samples.name), "__name__", "")
    return called is None or called.group(1) in {own, *_names(trial.samples.name)}


_LIBRARY: Final = re.compile(r"(has too little memory): .*?(?=\. Free tensors)", re.DOTALL)
"""What the library of a device says of its memory."""

_DTYPES: Final = re.compile(r"(?<=\. )It has [\w, ]+")
"""Which dtypes a device has."""

_INDEX: Final = re.compile(r"index -?\d+ is out of range")
"""Of several indices that are out of range, a device may find any first."""


_SIGNATURE: Final = re.compile(
    r"positional|unexpected keyword|multiple values|missing \d|takes .* argument|"
    r"unsupported operand"
)
"""What Python says of a call that does not fit a signature."""

_CALLED: Final = re.compile(r"(?:[\w<>]+\.)*(\w+)\(\) ")
"""How that begins: with the function that was called."""


def _complaint(name: str, found: _Outcome) -> str:
    """What is wrong with an error, on whatever device; "" if nothing is."""
    if not found.kind or found.is_of_signature or name in _CALLS_OTHERS:
        return ""
    said = f"{found.kind}: {found.text}"
    if not found.is_burns:
        return f"it raised no error of burn but {said}"
    for phrase in _FORBIDDEN:
        if phrase in found.text:
            return f"the message says {phrase!r}: {said}"
    unknown = unknown_names(found.hint)
    if unknown:
        return f"the hint names {', '.join(unknown)}, which is not there: {said}"
    head = re.match(r"[\w.]+(?=[(:])", found.text)
    named = head.group() if head else ""
    if named.rpartition(".")[2] not in _names(name):
        return f"the message names {named!r}: {said}"
    return ""


def _names(function: str) -> set[str]:
    """What a message may call a function."""
    name = function.rpartition(".")[2]
    if not name.startswith("__"):
        return {name}
    bare = name.strip("_")
    names = {name, bare}
    for part in (bare, bare[1:]):  # "iadd", "radd"
        names |= {part, _OPERATORS.get(part, part)}
    return names


def _difference(found: _Outcome, expected: _Outcome) -> str:
    """What another device does otherwise; "" if nothing."""
    if (found.kind, found.text) == (expected.kind, expected.text):
        return ""
    kinds = {found.kind, expected.kind}
    if kinds == {"", "OutOfRangeError"} and (found.is_empty or expected.is_empty):
        return ""  # an index by which no element is read

    def shown(one: _Outcome) -> str:
        return f"{one.kind}: {one.text}" if one.kind else "a result"

    return f"gives\n    {shown(found)}\n  where the reference backend gives\n    {shown(expected)}"


def _is_comparable(samples: FunctionSamples, one: FunctionCall, wrong: str = "") -> bool:
    """Whether the reference backend has the dtypes of a call; it has no complex ones."""
    return not samples.needs_complex and main_kind(one) != "c" and wrong != A_COMPLEX_NUMBER


def _neutral(text: str, device: Device) -> str:
    """A message without the names of devices."""
    for item, name in ((device.hardware, "DEVICE"), (reference_devices()[1], "OTHER")):
        text = re.sub(rf"(?<![\w/]){re.escape(item.name)}(?![\w/])", name, text)
    text = _INDEX.sub("index N is out of range", text)
    text = _DTYPES.sub("", text)
    return _LIBRARY.sub(r"\1", text)
