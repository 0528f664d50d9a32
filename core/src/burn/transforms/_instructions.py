"""Instructions of Python's bytecode, as an abstract interpretation follows them.

Names of several versions of Python are in one table.
"""

from __future__ import annotations

import dis
import sys
import types
from collections.abc import Callable, Mapping
from typing import Any, Final

from burn.transforms.code_values import (
    NULL,
    UNKNOWN,
    Call,
    Nested,
    Parts,
    Reader,
    Value,
    joined,
    known,
    named_parts,
)

__all__ = ["HANDLERS", "Instructions"]


class Instructions:
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

    def _use(self, value: Value) -> None:
        """An operation takes a value, and may look at all that it has."""
        self._reader.contents(value)

    # Instructions. Names of several versions of Python are in one table.

    def _load_fast(self, one: dis.Instruction) -> None:
        names = one.argval if isinstance(one.argval, tuple) else (one.argval,)
        for name in names:
            self._push(self._local.get(name, UNKNOWN))

    def _store_fast(self, one: dis.Instruction) -> None:
        names = one.argval if isinstance(one.argval, tuple) else (one.argval,)
        for name in names:
            self._local[name] = self._pop()

    def _store_load(self, one: dis.Instruction) -> None:
        stored, loaded = one.argval
        self._local[stored] = self._pop()
        self._push(self._local.get(loaded, UNKNOWN))

    def _delete_fast(self, one: dis.Instruction) -> None:
        self._local.pop(one.argval, None)

    def _load_deref(self, one: dis.Instruction) -> None:
        name = one.argval
        owner = self._variables.get(name)
        if isinstance(owner, types.CellType):
            self._push(self._reader.variable(owner, name, self._name))
        else:
            self._push(self._local.get(name, owner if isinstance(owner, Value) else UNKNOWN))

    def _load_closure(self, one: dis.Instruction) -> None:
        owner = self._variables.get(one.argval)
        self._push(known(owner) if owner is not None else self._local.get(one.argval, UNKNOWN))

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
        found = [_super(one_kind, x) for one_kind in kind.objects for x in instance.objects]
        value = self._reader.attribute(Value(tuple(filter(None, found))), one.argval)
        if (one.arg or 0) & 1:
            self._push(NULL)
        self._push(value)

    def _subscript(self, _: dis.Instruction) -> None:
        owner, key = self._take(2)
        self._push(self._reader.item(owner, key))

    def _binary(self, one: dis.Instruction) -> None:
        if one.argrepr == "[]":
            self._subscript(one)
            return
        for value in self._take(2):
            self._use(value)
        self._push(UNKNOWN)

    def _get_iter(self, _: dis.Instruction) -> None:
        """An iterator stands for what it goes through."""

    def _unpack(self, one: dis.Instruction) -> None:
        value = self._pop()
        count = (one.arg or 0) if one.opname == "UNPACK_SEQUENCE" else 1 + (one.arg or 0) % 256
        count += (one.arg or 0) >> 8 if one.opname == "UNPACK_EX" else 0
        parts = value.objects[0] if len(value.objects) == 1 else None
        if isinstance(parts, Parts) and len(parts.items) == count:
            self._stack += parts.items[::-1]
            return
        self._stack += [self._reader.contents(value)] * count

    def _build(self, one: dis.Instruction) -> None:
        self._push(known(Parts(self._take(one.arg or 0))))

    def _extend(self, one: dis.Instruction) -> None:
        value = self._pop()
        target = self._item(one.arg or 1)
        for parts in target.objects:
            if isinstance(parts, Parts):
                for given in value.objects:
                    parts.items += given.items if isinstance(given, Parts) else []
                parts.items += [known(item) for item in self._reader.contents(value).objects]

    def _build_map(self, one: dis.Instruction) -> None:
        pairs = self._take(2 * (one.arg or 0))
        parts = Parts(pairs[1::2])
        for key, value in zip(pairs[::2], pairs[1::2], strict=True):
            if len(key.objects) == 1 and isinstance(key.objects[0], str):
                parts.named[key.objects[0]] = value
        self._push(known(parts))

    def _build_const_map(self, one: dis.Instruction) -> None:
        keys = self._pop()
        values = self._take(one.arg or 0)
        names = keys.objects[0] if keys.objects else ()
        self._push(known(Parts(values, dict(zip(names, values, strict=False)))))

    def _merge(self, one: dis.Instruction) -> None:
        value = self._pop()
        self._reader.contents(value)
        target = self._item(one.arg or 1)
        for parts in target.objects:
            for given in value.objects:
                if isinstance(parts, Parts):
                    parts.named |= named_parts(given)

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
        closure: Value = UNKNOWN
        defaults: list[Value] = []
        if one.opname == "MAKE_FUNCTION" and one.arg and not _HAS_FUNCTION_ATTRIBUTES:
            if one.arg & 0x08:
                closure = self._pop()
            defaults = self._take((one.arg & 7).bit_count())
        for found in code.objects:
            if isinstance(found, types.CodeType):
                nested = Nested(found, self._nested_variables(found, closure), joined(defaults))
                self._push(known(nested))
                return
        self._push(UNKNOWN)

    def _nested_variables(self, code: types.CodeType, closure: Value) -> dict[str, Any]:
        del closure  # its variables have the same names here
        return {
            name: self._variables.get(name) or self._local.get(name, UNKNOWN)
            for name in code.co_freevars
        }

    def _set_function_attribute(self, _: dis.Instruction) -> None:
        function = self._pop()
        self._pop()
        self._push(function)

    def _keyword_names(self, one: dis.Instruction) -> None:
        self._keywords = one.argval if isinstance(one.argval, tuple) else ()

    def _call(self, one: dis.Instruction) -> None:
        names: tuple[str, ...] = self._keywords
        self._keywords = ()
        if one.opname == "CALL_KW":
            found = self._pop().objects
            names = found[0] if found else ()
        args = self._take(one.arg or 0)
        pair = self._take(2)
        positional = args[: len(args) - len(names)]
        named = dict(zip(names, args[len(positional) :], strict=True))
        function = pair[0]
        if pair[0] is NULL:
            function = pair[1]
        elif pair[1] is not NULL:
            positional = [pair[1], *positional]
        self._push(self._called(function, positional, named))

    def _called(self, function: Value, args: list[Value], named: dict[str, Value]) -> Value:
        if any(one is super for one in function.objects) and not args:
            kind = self._variables.get("__class__")
            first = self._local.get(self._code.co_varnames[0], UNKNOWN)
            if isinstance(kind, types.CellType):
                made = [_super(kind.cell_contents, x) for x in first.objects]
                return Value(tuple(filter(None, made)))
        return self._reader.call(function, Call(tuple(args), named))

    def _call_with(self, one: dis.Instruction) -> None:
        """A call with ``*args`` and perhaps ``**keywords``."""
        named = self._pop() if _ALWAYS_HAS_KEYWORDS or (one.arg or 0) & 1 else UNKNOWN
        args = self._pop()
        pair = self._take(2)
        function = pair[1] if pair[0] is NULL or not pair[0].objects else pair[0]
        positional: list[Value] = []
        for given in args.objects:
            if isinstance(given, Parts):
                positional += given.items
            else:
                positional += [known(item) for item in self._reader.contents(known(given)).objects]
        keywords: dict[str, Value] = {}
        for given in named.objects:
            if not isinstance(given, Parts):
                self._reader.contents(known(given))
            keywords |= named_parts(given)
        self._push(self._called(function, positional, keywords))

    def _store_away(self, one: dis.Instruction) -> None:
        """A value is stored where nothing follows it."""
        self._adjust(dis.stack_effect(one.opcode, one.arg))

    def _nothing(self, _: dis.Instruction) -> None:
        """The values on the stack stay what they are."""


def _super(kind: Any, instance: Any) -> Any:
    try:
        return super(kind, instance)
    except TypeError:
        return None


_HAS_METHOD_BIT: Final = sys.version_info >= (3, 12)  # ``LOAD_METHOD`` may be a name all the same
_HAS_FUNCTION_ATTRIBUTES: Final = "SET_FUNCTION_ATTRIBUTE" in dis.opmap
_ALWAYS_HAS_KEYWORDS: Final = dis.stack_effect(dis.opmap["CALL_FUNCTION_EX"], 0) == -3

_TABLE: Final[dict[str, Callable[[Instructions, dis.Instruction], None]]] = {
    "LOAD_FAST LOAD_FAST_CHECK LOAD_FAST_AND_CLEAR LOAD_FAST_BORROW LOAD_FAST_LOAD_FAST "
    "LOAD_FAST_BORROW_LOAD_FAST_BORROW": Instructions._load_fast,
    "STORE_FAST STORE_FAST_STORE_FAST STORE_DEREF STORE_FAST_MAYBE_NULL": Instructions._store_fast,
    "STORE_FAST_LOAD_FAST": Instructions._store_load,
    "DELETE_FAST DELETE_DEREF": Instructions._delete_fast,
    "LOAD_DEREF LOAD_CLASSDEREF LOAD_FROM_DICT_OR_DEREF": Instructions._load_deref,
    "LOAD_CLOSURE": Instructions._load_closure,
    "LOAD_GLOBAL LOAD_NAME": Instructions._load_global,
    "LOAD_CONST LOAD_SMALL_INT": Instructions._load_const,
    "LOAD_ATTR LOAD_METHOD": Instructions._load_attr,
    "LOAD_SUPER_ATTR": Instructions._load_super,
    "BINARY_SUBSCR": Instructions._subscript,
    "BINARY_OP COMPARE_OP CONTAINS_OP": Instructions._binary,
    "GET_ITER": Instructions._get_iter,
    "UNPACK_SEQUENCE UNPACK_EX": Instructions._unpack,
    "BUILD_TUPLE BUILD_LIST": Instructions._build,
    "LIST_EXTEND": Instructions._extend,
    "BUILD_MAP": Instructions._build_map,
    "BUILD_CONST_KEY_MAP": Instructions._build_const_map,
    "DICT_MERGE DICT_UPDATE": Instructions._merge,
    "COPY": Instructions._copy,
    "SWAP": Instructions._swap,
    "PUSH_NULL": Instructions._push_null,
    "RETURN_GENERATOR": Instructions._push_unknown,
    "MAKE_FUNCTION": Instructions._make_function,
    "SET_FUNCTION_ATTRIBUTE": Instructions._set_function_attribute,
    "KW_NAMES": Instructions._keyword_names,
    "CALL CALL_KW": Instructions._call,
    "CALL_FUNCTION_EX": Instructions._call_with,
    "STORE_ATTR STORE_SUBSCR STORE_GLOBAL STORE_NAME POP_TOP DELETE_ATTR DELETE_SUBSCR "
    "END_FOR POP_ITER END_SEND": Instructions._store_away,
    "RESUME NOP PRECALL CACHE COPY_FREE_VARS MAKE_CELL LIST_TO_TUPLE CALL_INTRINSIC_1 "
    "SETUP_ANNOTATIONS NOT_TAKEN": Instructions._nothing,
}
HANDLERS: Final = {name: handler for names, handler in _TABLE.items() for name in names.split()}
