"""Write the pages of all ops and of the required ones, which are made of what the code says.

They are in the repository, so that they can be read there:

    .venv/bin/python docs/op_pages.py            writes them
    .venv/bin/python docs/op_pages.py --check    says which are out of date
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from burn.backend import Backend, is_implemented
from burn.cli.required_methods import RequiredMethod, required_methods
from burn.dtype import DType, Kind
from burn.ops import REGISTRY, Op, Operand, Tag
from burn.testing import SAMPLES, OpSamples

KIND_NAMES = {"b": "bool", "i": "int", "u": "uint", "f": "float", "c": "complex"}


def main() -> int:
    """Write the pages, or compare them; returns the exit status."""
    folder = Path(__file__).parent
    pages = {"authors/required-ops.md": required_page(), "reference/ops.md": ops_page()}
    stale = []
    for name, lines in pages.items():
        path = folder / name
        text = "\n".join(lines) + "\n"
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if "--check" not in sys.argv:
            path.write_text(text, encoding="utf-8", newline="\n")
    verb = "out of date: run docs/op_pages.py" if "--check" in sys.argv else "written"
    for name in stale:
        sys.stdout.write(f"docs/{name}: {verb}\n")
    return int(bool(stale) and "--check" in sys.argv)


def markdown(docstring: str | None) -> str:
    """A docstring as Markdown: definition lists become bullets, sections paragraphs."""
    text = inspect.cleandoc(docstring or "")
    text = re.sub(r"(?m)^Raises\n-+\n(\w+)\n    ((?:.+\n?(?:    )?)+)", _raises, text)
    text = re.sub(r"(?m)^(``.+``)\n    ((?:.+\n?(?:    )?)+?)(?=^``|\Z)", _bullet, text)
    return re.sub(r"(?m)^(\w[\w ]*)\n-{3,}$", r"**\1**\n", text)


def _raises(match: re.Match[str]) -> str:
    text = " ".join(match[2].split())
    return f"Raises `{match[1]}` {text[:1].lower()}{text[1:]}"


def _bullet(match: re.Match[str]) -> str:
    return f"- {match[1]}: {' '.join(match[2].split())}\n"


def kinds(spec: Operand) -> str:
    """The kinds of dtypes that an operand takes, in words."""
    if spec.kinds == Kind.ANY:
        return "any dtype"
    return ", ".join(KIND_NAMES[letter] for letter in str(spec.kinds))


# The page of the required ops.


def required_page() -> Iterator[str]:
    """Every method that a backend has to write, and what the kit tries of it."""
    methods = required_methods()
    members = [
        name
        for name, member in vars(Backend).items()
        if callable(member) and not is_implemented(member)
    ]
    yield "# The required operations\n"
    yield (
        f"A backend writes {len(members)} members of `Backend` and the {len(methods)} methods on "
        "this page; every other operation has a [default](overriding.md) made of them. The page "
        "is made of the protocols, of the op definitions and of the samples of the conformance "
        "kit, so it says what this version asks for.\n"
    )
    yield _CONVENTIONS
    yield "## Beside the operations\n"
    for name in members:
        yield from _member(name)
    topics = dict.fromkeys((method.protocol, method.topic) for method in methods)
    for protocol, topic in topics:
        yield f"## {protocol}\n\n{topic}\n"
        for method in methods:
            if method.protocol == protocol:
                yield from _required(method)


_CONVENTIONS = """What is true of all of them:

- **Operands.** They are on one device, and those that are computed with each other have one dtype.
  Shapes broadcast as in NumPy. Where a Python number may stand, at least one operand is a tensor.
  The number lies in the range of that tensor's dtype, and the method rounds it to the dtype before
  it computes: 0.1 equals the float32 nearest to it. A float tensor may meet an int.
- **Results.** A result has the dtype of the operands, unless the operation says otherwise:
  comparisons give bool, and an attribute `dtype` (a [`DType`](../reference/tensor.md)) is what
  comes out. Functions of floats give NaN and infinities where IEEE 754 does, and never raise. The
  sign of a zero is that of IEEE 754 and of the array API standard where the operation says "zeros
  with their sign", and free in other results; the sign of a NaN is free.
- **Outputs.** An operation with one output returns it, one with several a tuple. Outputs that are
  lists are flat in the tuple, one output after the other: `adam_step` of two parameters returns
  `(parameter, parameter, first moment, first moment, second moment, second moment)`. No required
  operation has several.
- **Memory.** An operand is never written to. A result may share memory with an operand, as long as
  neither is ever written to. Operands come in any layout that methods of the backend produce.
- **Shapes.** A tensor may have no axes (one element), or an axis of length 0 (no elements).
- **Axes** are in `[0, rank)`. The `axis` of a reduction is a tuple of different ones; over none it
  leaves the elements as they are.
- **Precision.** Where a sum or a product of several elements is taken, 16-bit floats are computed
  in float32 and rounded once.
- **Refusals.** Kinds of dtypes, and what `full` and `arange` are given, were checked before. On the
  rest of what "not accepted" lists a method raises an exception, whichever: burn finds the reason.
  Where nothing underneath notices, `burn.ops.REGISTRY[name].infer` raises: it takes the operands
  as `Meta(shape, dtype)`, and returns the shape and the dtype of the result. Only for an index that
  a tensor holds is the error the method's own, an `OutOfRangeError`.
- **The kit** tries each with the samples that are listed, in every dtype of their kind that the
  device has, and compares with a reference in float64, with [tolerances](kit.md#tolerances).
"""


def _member(name: str) -> Iterator[str]:
    method = getattr(Backend, name)
    yield f"### `{name}`\n"
    yield f"```py\ndef {name}{_signature(method)}\n```\n"
    yield markdown(method.__doc__) + "\n"


def _required(method: RequiredMethod) -> Iterator[str]:
    yield f"### `{method.name}`\n"
    yield f"```py\n{inspect.cleandoc(_head(method.source))}\n```\n"
    yield markdown(getattr(Backend, method.name).__doc__) + "\n"
    definition = REGISTRY.get(method.name)
    if definition is None:  # uploads and downloads
        return
    yield from _operands(definition)
    samples = SAMPLES[method.name]
    notes = [_DTYPE.sub(" to each dtype", sample.note) for sample in samples.samples]
    yield f"The kit tries: {_listed(note for note in notes if not note.startswith('complex'))}.\n"
    yield f"Compared with the reference: {_comparison(samples)}.\n"
    errors = [error for error in samples.errors if not error.lenient]
    if errors:
        refused = (f"{error.note} (`{error.expected.__name__}`)" for error in errors)
        yield f"Not accepted: {_listed(refused)}.\n"


_DTYPE = re.compile(rf" to ({'|'.join(dtype.name for dtype in DType.members())})$")


def _comparison(samples: OpSamples) -> str:
    """How the kit compares results with those of the reference."""
    if samples.exact or Tag.VIEW in samples.op.tags:
        return "equal numbers, zeros with their sign"
    return "floats within tolerances" + ", zeros with their sign" * samples.signed_zeros


def _listed(notes: Iterable[str]) -> str:
    return "; ".join(dict.fromkeys(notes))


def _head(source: str) -> str:
    """A method up to its docstring."""
    return source.partition('"""')[0].rstrip()


def _signature(function: Any) -> str:
    return str(inspect.signature(function)).replace("'", "")


def _operands(definition: Op) -> Iterator[str]:
    for name, spec in definition.operands.items():
        text = f"list of tensors of {kinds(spec)}" if spec.is_list else kinds(spec)
        yield f"- `{name}`: {text}{', or a number' * spec.scalar}{', or None' * spec.optional}"
    yield ""


# The page of all ops.


def ops_page() -> Iterator[str]:
    """Every op, by family."""
    required = sum(op.is_required for op in REGISTRY.values())
    yield "# Operations\n"
    yield (
        f"burn has {len(REGISTRY)} operations. {required} are required of a backend; the others "
        "have a default made of those, or are computed on the host where a backend has nothing "
        "better. `burn ops BACKEND` says which of them a backend has itself. What users call are "
        "the [functions](functions.md); operations take and return primitives, and every "
        "attribute is explicit.\n"
    )
    for module, definitions in _families().items():
        title = module.rpartition(".")[2].replace("_", " ").capitalize()
        yield f"## Family: {title}\n\n{_about(module)}\n"
        for definition in definitions:
            yield from _op(definition)


def _families() -> dict[str, list[Op]]:
    families: dict[str, list[Op]] = {}
    for op in REGISTRY.values():
        families.setdefault(op.__module__, []).append(op)
    return {module: families[module] for module in sorted(families)}


def _op(definition: Op) -> Iterator[str]:
    names = [*definition.operands]
    if definition.attributes:
        names.append("*")
    for attribute in definition.attributes.values():
        shown = "" if attribute.required else f"={attribute.default!r}"
        names.append(attribute.name + shown)
    outputs = ", ".join(definition.outputs)
    yield f"### {definition.name}\n"
    yield f"```py\n{definition.name}({', '.join(names)}) -> {outputs}\n```\n"
    yield markdown(definition.__doc__) + "\n"
    yield from _operands(definition)
    operands = definition.operands
    if any(operands[name].is_list for name in definition.outputs if name in operands):
        yield "The outputs are lists, flat in one tuple: all of the first, then all of the next.\n"
    yield f"*{_origin(definition)}; {_gradient(definition)}.*\n"


def _origin(definition: Op) -> str:
    if definition.is_required:
        return "Required"
    return "Has a default" if definition.default is not None else "On the host by default"


def _gradient(definition: Op) -> str:
    if Tag.UNTRACKED in definition.tags:
        return "refuses tracked operands"
    if Tag.NO_GRADIENT in definition.tags:
        return "no gradient"
    if definition.vjp is not None:
        return "its gradient is a rule"
    return "its gradient is that of its default"


def _about(module: str) -> str:
    return (sys.modules[module].__doc__ or "").partition("\n")[0]


if __name__ == "__main__":
    sys.exit(main())
