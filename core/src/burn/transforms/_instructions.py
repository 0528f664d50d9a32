"""Instructions of Python's bytecode, as an abstract interpretation follows them.

Names of several versions of Python are in one table.
"""

from __future__ import annotations

import dis
import types
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from burn.transforms._stack import Stack
from burn.transforms.code_values import (
    NULL,
    UNKNOWN,
    Call,
    Parts,
    Value,
    either,
    is_a,
    joined,
    known,
    named_parts,
)

__all__ = ["HANDLERS", "Instructions"]


class Instructions(Stack):
    """What instructions compute: operators, containers, patterns, calls."""

    # Operators.

    def _subscript(self, _: dis.Instruction) -> None:
        owner, key = self._take(2)
        self._push(self._reader.item(owner, key))

    def _slice(self, _: dis.Instruction) -> None:
        owner = self._take(3)[0]
        self._push(Value(self._reader.contents(owner).objects, has_parts=True))

    def _store_subscript(self, _: dis.Instruction) -> None:
        value, owner, key = self._take(3)
        self._reader.contents(key)
        self._reader.add(owner, value)

    def _binary(self, one: dis.Instruction) -> None:
        if one.argrepr == "[]":
            self._subscript(one)
            return
        self._push(self._reader.operate(self._take(2), _methods_of(one)))

    def _unary(self, one: dis.Instruction) -> None:
        self._push(self._reader.operate(self._take(1), _methods_of(one)))

    def _not(self, _: dis.Instruction) -> None:
        self._reader.truth(self._pop())
        self._push(UNKNOWN)

    def _to_bool(self, _: dis.Instruction) -> None:
        self._reader.truth(self._item(1))

    def _get_iter(self, _: dis.Instruction) -> None:
        """An iterator stands for what it goes through."""

    def _enter(self, _: dis.Instruction) -> None:
        manager = self._pop()
        found = [
            self._reader.call(self._reader.attribute(manager, name), Call((), {}))
            for name in ("__enter__", "__aenter__", "__exit__", "__aexit__")
        ]
        self._push(UNKNOWN)
        inside = self._reader.contents(manager) if manager.has_parts else UNKNOWN
        self._push(joined([*found[:2], inside]))

    def _yield(self, _: dis.Instruction) -> None:
        self._yielded.append(self._pop())
        self._push(UNKNOWN)

    def _yield_from(self, _: dis.Instruction) -> None:
        self._yielded.append(self._reader.contents(self._item(1)))

    # Patterns of ``match``.

    def _match_class(self, one: dis.Instruction) -> None:
        subject, kinds, names = self._take(3)
        positional = [
            name
            for kind in kinds.objects
            for name in getattr(kind, "__match_args__", ())[: one.arg or 0]
        ]
        named = [name for found in names.objects if isinstance(found, tuple) for name in found]
        values = [self._reader.attribute(subject, name) for name in (*positional, *named)]
        self._push(self._parts(one, values, {}))

    def _match_keys(self, one: dis.Instruction) -> None:
        subject, keys = self._item(2), self._item(1)
        named = keys.objects[0] if keys.objects and isinstance(keys.objects[0], tuple) else ()
        values = [self._reader.item(subject, known(key)) for key in named]
        self._push(self._parts(one, values, {}))

    # Containers.

    def _unpack(self, one: dis.Instruction) -> None:
        value = self._pop()
        count = (one.arg or 0) if one.opname == "UNPACK_SEQUENCE" else 1 + (one.arg or 0) % 256
        count += (one.arg or 0) >> 8 if one.opname == "UNPACK_EX" else 0
        parts = value.objects[0] if len(value.objects) == 1 else None
        if isinstance(parts, Parts) and len(parts.items) == count and not parts.named:
            self._stack += parts.items[::-1]
            return
        contents = self._reader.contents(value)
        if one.opname == "UNPACK_EX":  # one of them is a list
            contents = Value(contents.objects, has_parts=True)
        self._stack += [contents] * count

    def _build(self, one: dis.Instruction) -> None:
        self._push(self._parts(one, self._take(one.arg or 0), {}))

    def _parts(
        self, one: dis.Instruction, items: Sequence[Value], named: Mapping[str, Value]
    ) -> Value:
        parts = self._once(one, lambda: Parts(items, named))
        for index, value in enumerate(items[: len(parts.items)]):
            parts.items[index] = either(parts.items[index], value)
        for name, value in named.items():
            parts.named[name] = either(parts.named.get(name, UNKNOWN), value)
        return known(parts)

    def _extend(self, one: dis.Instruction) -> None:
        value = self._pop()
        target = self._item(one.arg or 1)
        given = value.objects[0] if len(value.objects) == 1 else None
        parts = target.objects[0] if len(target.objects) == 1 else None
        if isinstance(given, Parts) and isinstance(parts, Parts) and not parts.items:
            parts.items += given.items  # in order
            return
        for item in self._reader.contents(value).objects:
            self._reader.add(target, known(item))

    def _append(self, one: dis.Instruction) -> None:
        value = self._pop()
        self._reader.add(self._item(one.arg or 1), value)

    def _map_add(self, one: dis.Instruction) -> None:
        key, value = self._take(2)
        self._reader.add(self._item(one.arg or 1), key)
        self._reader.add(self._item(one.arg or 1), value)

    def _build_map(self, one: dis.Instruction) -> None:
        pairs = self._take(2 * (one.arg or 0))
        named = {
            key.objects[0]: value
            for key, value in zip(pairs[::2], pairs[1::2], strict=True)
            if len(key.objects) == 1 and is_a(key.objects[0], str)
        }
        keys = [key for key in pairs[::2] if not any(is_a(found, str) for found in key.objects)]
        self._push(self._parts(one, [*pairs[1::2], *keys], named))

    def _build_const_map(self, one: dis.Instruction) -> None:
        keys = self._pop()
        values = self._take(one.arg or 0)
        names = keys.objects[0] if keys.objects else ()
        self._push(self._parts(one, values, dict(zip(names, values, strict=False))))

    def _merge(self, one: dis.Instruction) -> None:
        value = self._pop()
        target = self._item(one.arg or 1)
        for item in self._reader.contents(value).objects:
            self._reader.add(target, known(item))
        for parts in target.objects:
            for given in value.objects:
                if isinstance(parts, Parts):
                    parts.named |= named_parts(given)

    # Calls.

    def _keyword_names(self, one: dis.Instruction) -> None:
        self._keywords = self._code.co_consts[one.arg or 0]

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
        self._push(self._called(one, function, positional, named))

    def _called(
        self,
        one: dis.Instruction,
        function: Value,
        args: list[Value],
        named: dict[str, Value],
    ) -> Value:
        if any(found is super for found in function.objects):
            kind = self._variables.get("__class__")
            if len(args) == 2:
                return self._super(one, args[0], args[1])
            if isinstance(kind, types.CellType) and self._code.co_varnames:
                first = self._local.get(self._code.co_varnames[0], UNKNOWN)
                return self._super(one, known(kind.cell_contents), first)
        if any(found is globals for found in function.objects):
            return known(self._globals)
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
        self._push(self._called(one, function, positional, keywords))

    def _store_away(self, one: dis.Instruction) -> None:
        """A value is stored where nothing follows it."""
        self._adjust(dis.stack_effect(one.opcode, one.arg))

    def _give_unknown(self, one: dis.Instruction) -> None:
        """A truth value, a slice, an exception, a class: nothing of what it is made of."""
        effect = dis.stack_effect(one.opcode, one.arg)
        self._take(1 - effect)
        self._push(UNKNOWN)

    def _format(self, one: dis.Instruction) -> None:
        """A text of an object, perhaps by a format above it."""
        effect = dis.stack_effect(one.opcode, one.arg)
        for value in self._take(1 - effect):
            self._reader.contents(value)
            self._reader.operate([value], ("__format__", "__str__", "__repr__"))
        self._push(UNKNOWN)

    def _nothing(self, _: dis.Instruction) -> None:
        """The values on the stack stay what they are."""


_OPERATORS: Final = {
    "+": "add",
    "-": "sub",
    "*": "mul",
    "/": "truediv",
    "//": "floordiv",
    "%": "mod",
    "**": "pow",
    "@": "matmul",
    "&": "and",
    "|": "or",
    "^": "xor",
    "<<": "lshift",
    ">>": "rshift",
}
_COMPARISONS: Final = ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__")
_UNARY: Final = {
    "UNARY_NEGATIVE": ("__neg__",),
    "UNARY_POSITIVE": ("__pos__",),
    "UNARY_INVERT": ("__invert__",),
    "CONTAINS_OP": ("__contains__", "__iter__", "__next__"),
    "COMPARE_OP": _COMPARISONS,
}


def _methods_of(one: dis.Instruction) -> tuple[str, ...]:
    """The methods of classes that an instruction calls."""
    name = _OPERATORS.get(one.argrepr.rstrip("=") or one.argrepr)
    if one.opname != "BINARY_OP" or name is None:
        return _UNARY.get(one.opname, ())
    return f"__{name}__", f"__r{name}__", f"__i{name}__"


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
    "IMPORT_NAME": Instructions._import,
    "IMPORT_FROM": Instructions._import_from,
    "STORE_ATTR": Instructions._store_attr,
    "BINARY_SUBSCR": Instructions._subscript,
    "BINARY_SLICE": Instructions._slice,
    "STORE_SUBSCR": Instructions._store_subscript,
    "BINARY_OP COMPARE_OP CONTAINS_OP": Instructions._binary,
    "UNARY_NEGATIVE UNARY_POSITIVE UNARY_INVERT": Instructions._unary,
    "UNARY_NOT": Instructions._not,
    "TO_BOOL": Instructions._to_bool,
    "BEFORE_WITH BEFORE_ASYNC_WITH": Instructions._enter,
    "YIELD_VALUE": Instructions._yield,
    "GET_YIELD_FROM_ITER": Instructions._yield_from,
    "MATCH_CLASS": Instructions._match_class,
    "MATCH_KEYS": Instructions._match_keys,
    "GET_ITER": Instructions._get_iter,
    "UNPACK_SEQUENCE UNPACK_EX": Instructions._unpack,
    "BUILD_TUPLE BUILD_LIST BUILD_SET": Instructions._build,
    "LIST_EXTEND SET_UPDATE": Instructions._extend,
    "LIST_APPEND SET_ADD": Instructions._append,
    "MAP_ADD": Instructions._map_add,
    "BUILD_MAP": Instructions._build_map,
    "BUILD_CONST_KEY_MAP": Instructions._build_const_map,
    "DICT_MERGE DICT_UPDATE": Instructions._merge,
    "COPY": Instructions._copy,
    "SWAP": Instructions._swap,
    "PUSH_NULL": Instructions._push_null,
    "RETURN_GENERATOR": Instructions._push_unknown,
    "MAKE_FUNCTION": Instructions._make_function,
    "SET_FUNCTION_ATTRIBUTE": Instructions._set_function_attribute,
    "IS_OP CHECK_EXC_MATCH BUILD_SLICE": Instructions._give_unknown,
    "FORMAT_VALUE FORMAT_SIMPLE FORMAT_WITH_SPEC": Instructions._format,
    "KW_NAMES": Instructions._keyword_names,
    "CALL CALL_KW": Instructions._call,
    "CALL_FUNCTION_EX": Instructions._call_with,
    "STORE_GLOBAL STORE_NAME POP_TOP DELETE_ATTR DELETE_SUBSCR "
    "END_FOR POP_ITER END_SEND RAISE_VARARGS LOAD_ASSERTION_ERROR PUSH_EXC_INFO LOAD_BUILD_CLASS "
    "MATCH_SEQUENCE MATCH_MAPPING": Instructions._store_away,
    "RESUME NOP PRECALL CACHE COPY_FREE_VARS MAKE_CELL LIST_TO_TUPLE CALL_INTRINSIC_1 "
    "SETUP_ANNOTATIONS NOT_TAKEN": Instructions._nothing,
}
HANDLERS: Final = {name: handler for names, handler in _TABLE.items() for name in names.split()}
