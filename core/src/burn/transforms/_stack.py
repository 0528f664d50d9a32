"""The stack and the variables of an abstract interpretation, and the instructions that move them.

Names of several versions of Python are in one table, which `burn.transforms._instructions` has.
"""

from __future__ import annotations

import contextlib
import dis
import functools
import importlib.util
import sys
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from burn.transforms.code_values import (
    NULL,
    UNKNOWN,
    Nested,
    Reader,
    Super,
    Value,
    Variable,
    either,
    identity_of,
    is_a,
    known,
)

__all__ = ["Stack"]


class Stack:
    """What each instruction does with the stack and the local variables."""

    def __init__(
        self,
        reader: Reader,
        code: types.CodeType,
        variables: Mapping[str, Any],
        around: tuple[dict[str, Any], str],
    ) -> None:
        self._reader = reader
        self._code = code
        self._variables = variables
        self._globals, self._name = around
        self._keywords: tuple[str, ...] = ()
        self._stack: list[Value] = []
        self._local: dict[str, Value] = {}
        self._stored: dict[str, Value] = {}
        self._made: dict[int, Any] = {}
        self._cells: dict[str, Variable] = {}
        self._returned: list[Value] = []
        self._yielded: list[Value] = []

    # The stack.

    def _push(self, value: Value) -> None:
        self._stack.append(value)

    def _pop(self) -> Value:
        return self._stack.pop() if self._stack else UNKNOWN

    def _take(self, count: int) -> list[Value]:
        values = [self._pop() for _ in range(count)]
        return values[::-1]

    def _item(self, depth: int) -> Value:
        """A value on the stack, counted from 1 at the top."""
        return self._stack[-depth] if depth <= len(self._stack) else UNKNOWN

    def _adjust(self, effect: int) -> None:
        for _ in range(-effect):
            self._pop()
        for _ in range(effect):
            self._push(UNKNOWN)

    def _once(self, one: dis.Instruction, make: Callable[[], Any]) -> Any:
        """The object that an instruction makes: one for all rounds of a loop."""
        if one.offset not in self._made:
            self._made[one.offset] = make()
        return self._made[one.offset]

    def _store(self, name: str, value: Value) -> None:
        self._local[name] = value
        before = self._stored.get(name, UNKNOWN)
        self._stored[name] = now = either(before, value)
        if name in self._code.co_cellvars:  # functions within may have been followed already
            self._reader.changes += identity_of(now) != identity_of(before)

    # Variables.

    def _load_fast(self, one: dis.Instruction) -> None:
        names = one.argval if isinstance(one.argval, tuple) else (one.argval,)
        for name in names:
            self._push(self._local.get(name, UNKNOWN))

    def _store_fast(self, one: dis.Instruction) -> None:
        names = one.argval if isinstance(one.argval, tuple) else (one.argval,)
        for name in names:
            self._store(name, self._pop())

    def _store_load(self, one: dis.Instruction) -> None:
        stored, loaded = one.argval
        self._store(stored, self._pop())
        self._push(self._local.get(loaded, UNKNOWN))

    def _delete_fast(self, one: dis.Instruction) -> None:
        self._local.pop(one.argval, None)

    def _load_deref(self, one: dis.Instruction) -> None:
        name = one.argval
        owner = self._variables.get(name)
        if isinstance(owner, types.CellType):
            self._push(self._reader.variable(owner, name, self._name))
        else:
            local = self._local.get(name, UNKNOWN)
            self._push(owner.value if isinstance(owner, Variable) else local)

    def _load_closure(self, one: dis.Instruction) -> None:
        owner = self._variables.get(one.argval)
        self._push(known(owner) if owner is not None else UNKNOWN)

    def _load_global(self, one: dis.Instruction) -> None:
        value = self._reader.variable(self._globals, one.argval, self._name)
        if one.opname == "LOAD_GLOBAL" and (one.arg or 0) & 1:
            self._push(NULL)
        self._push(value)

    def _load_const(self, one: dis.Instruction) -> None:
        self._push(known(one.argval))

    def _load_attr(self, one: dis.Instruction) -> None:
        owner = self._pop()
        value = self._reader.attribute(owner, one.argval)
        if one.opname == "LOAD_METHOD" or (_HAS_METHOD_BIT and (one.arg or 0) & 1):
            self._push(NULL)
        self._push(value)

    def _load_super(self, one: dis.Instruction) -> None:
        _, kind, instance = self._take(3)
        value = self._reader.attribute(self._super(one, kind, instance), one.argval)
        if (one.arg or 0) & 1:
            self._push(NULL)
        self._push(value)

    def _super(self, one: dis.Instruction, kind: Value, instance: Value) -> Value:
        made = self._once(one, dict)
        for of in kind.objects:
            for x in instance.objects:
                if is_a(of, type) and (id(of), id(x)) not in made:
                    made[id(of), id(x)] = Super(of, x)
        return Value(tuple(made.values()))

    def _import(self, one: dis.Instruction) -> None:
        """A module that is imported already; without ``from``, ``import a.b`` gives ``a``."""
        level, names = self._take(2)
        name = "." * next(iter(level.objects), 0) + one.argval
        with contextlib.suppress(ImportError):
            name = importlib.util.resolve_name(name, self._globals.get("__package__") or None)
        if not any(names.objects):
            name = name.partition(".")[0]
        module = sys.modules.get(name)
        self._push(UNKNOWN if module is None else known(module))

    def _import_from(self, one: dis.Instruction) -> None:
        self._push(self._reader.attribute(self._item(1), one.argval))

    def _store_attr(self, one: dis.Instruction) -> None:
        owner, value = self._pop(), self._pop()
        self._reader.store(owner, one.argval, value)

    # The stack.

    def _copy(self, one: dis.Instruction) -> None:
        self._push(self._item(one.arg or 1))

    def _swap(self, one: dis.Instruction) -> None:
        count = one.arg or 1
        if count <= len(self._stack):
            stack = self._stack
            stack[-1], stack[-count] = stack[-count], stack[-1]

    def _push_null(self, _: dis.Instruction) -> None:
        self._push(NULL)

    def _push_unknown(self, _: dis.Instruction) -> None:
        """A generator begins: its first instruction takes what was sent to it."""
        self._push(UNKNOWN)

    def _make_function(self, one: dis.Instruction) -> None:
        code = self._pop()
        flags = 0 if _HAS_FUNCTION_ATTRIBUTES else one.arg or 0
        if flags & 0x08:
            self._pop()  # the variables around it, which have the same names here
        defaults = self._take((flags & 7).bit_count())[: (flags & 3).bit_count()]
        for found in code.objects:
            if isinstance(found, types.CodeType):
                variables = {
                    name: self._variables.get(name) or self._cell(name)
                    for name in found.co_freevars
                }
                around = self._globals, self._name
                nested = self._once(one, functools.partial(Nested, found, variables, around))
                self._give_defaults(nested, flags, defaults)
                self._push(known(nested))
                return
        self._push(UNKNOWN)

    def _cell(self, name: str) -> Variable:
        if name not in self._cells:
            self._cells[name] = Variable(self._stored, name)
        return self._cells[name]

    def _set_function_attribute(self, one: dis.Instruction) -> None:
        function, value = self._pop(), self._pop()
        for found in function.objects:
            if isinstance(found, Nested):
                self._give_defaults(found, one.arg or 0, [value, value])
        self._push(function)

    def _give_defaults(self, function: Nested, flags: int, values: Sequence[Value]) -> None:
        if flags & 1:
            function.add_defaults(values[0])
        if flags & 2:
            function.add_named_defaults(values[-1])


_HAS_METHOD_BIT: Final = sys.version_info >= (3, 12)  # ``LOAD_METHOD`` may be a name all the same
_HAS_FUNCTION_ATTRIBUTES: Final = "SET_FUNCTION_ATTRIBUTE" in dis.opmap
