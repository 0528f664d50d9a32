"""What the code of functions reads: their instructions, followed for the objects that they name.

An abstract interpretation: each slot of the stack and each local variable has the objects that it
may hold, as far as they exist before the function runs. Instructions that this module does not know
make values of which nothing is known. All branches are followed.
"""

from __future__ import annotations

import dis
import functools
import types
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from burn.transforms._instructions import HANDLERS, Instructions
from burn.transforms.code_values import (
    UNKNOWN,
    Call,
    Reader,
    Value,
    bound_arguments,
    either,
    identity_of,
    joined,
    known,
)

__all__ = ["follow"]

_MAX_VISITS: Final = 100
"""Times that an instruction is followed, where each round of a loop finds more objects."""

_MAX_PASSES: Final = 10
"""Times that a function is followed, where containers that it makes have more objects each time."""


def follow(
    reader: Reader,
    code: types.CodeType,
    variables: Mapping[str, Any],
    around: tuple[dict[str, Any], str],
    call: Call,
    defaults: Mapping[str, Value],
) -> Value:
    """Follow the code of a function: what it may return.

    Parameters
    ----------
    reader : Reader
        Is told of each read.
    code : code
        The code.
    variables : dict of str to cell or Variable
        The variables around the function that it uses.
    around : (dict, str)
        The global variables, and the name of the function.
    call : Call
        The arguments.
    defaults : dict of str to Value
        Of parameters.
    """
    local = {**defaults, **bound_arguments(code, call)}
    return _Walk(reader, code, variables, around).run(local)


@functools.lru_cache(maxsize=1024)
def _instructions(code: types.CodeType) -> tuple[list[dis.Instruction], dict[int, int]]:
    """The instructions of a code, and the index of each by its offset."""
    found = list(dis.get_instructions(code))
    return found, {instruction.offset: index for index, instruction in enumerate(found)}


class _State(NamedTuple):
    stack: tuple[Value, ...]
    local: dict[str, Value]

    def identity(self) -> tuple[Any, ...]:
        """What distinguishes it from others."""
        stack = tuple([identity_of(value) for value in self.stack])
        return stack, {name: identity_of(value) for name, value in self.local.items()}


class _Walk(Instructions):
    """One call of a function."""

    def run(self, local: dict[str, Value]) -> Value:
        self._instructions, self._index = _instructions(self._code)
        self._states: dict[int, _State] = {}
        self._visits: dict[int, int] = {}
        self._waiting: list[int] = []
        if not self._instructions:
            return UNKNOWN
        self._stored |= local
        self._reach(0, _State((), local))
        for _ in range(_MAX_PASSES):
            changes = self._reader.changes
            while self._waiting:
                self._block(self._waiting.pop())
            self._reach_handlers()
            if not self._waiting and self._reader.changes == changes:
                break
            self._visits.clear()
            self._waiting = list(self._states)
        result = joined(self._returned)
        if not self._yielded:
            return result
        return Value(joined([result, *self._yielded]).objects, has_parts=True)

    def _reach_handlers(self) -> None:
        """Handlers of exceptions begin with variables as they are anywhere."""
        entries: Any = vars(dis.Bytecode(self._code)).get("exception_entries", ())
        for entry in entries:
            depth = entry.depth + entry.lasti + 1
            if entry.target in self._index:
                state = _State((UNKNOWN,) * depth, dict(self._stored))
                self._reach(self._index[entry.target], state)

    def _reach(self, index: int, state: _State) -> None:
        """Let a block begin with a state, or one of its earlier ones."""
        before = self._states.get(index)
        if before is not None:
            stack = tuple(map(either, before.stack, state.stack))
            local = {
                name: either(before.local.get(name, UNKNOWN), state.local.get(name, UNKNOWN))
                for name in {**before.local, **state.local}
            }
            state = _State(stack, local)
            if state.identity() == before.identity():
                return
        self._states[index] = state
        self._visits[index] = self._visits.get(index, 0) + 1
        if self._visits[index] <= _MAX_VISITS:
            self._waiting.append(index)

    def _block(self, index: int) -> None:
        """Follow instructions until they go elsewhere."""
        state = self._states[index]
        self._stack, self._local = list(state.stack), dict(state.local)
        while index < len(self._instructions):
            one = self._instructions[index]
            if one.is_jump_target and index not in self._states:
                self._states[index] = _State(tuple(self._stack), dict(self._local))
            name = one.opname
            if name in ("RETURN_VALUE", "RETURN_CONST"):
                value = self._pop() if name == "RETURN_VALUE" else known(one.argval)
                self._returned.append(value)
                return
            if one.opcode in _JUMPS:
                self._jump(one)
                if name in _ALWAYS:
                    return
            else:
                self._reader.is_update = self._is_update(index)
                self._step(one)
                self._reader.is_update = False
                if name in ("RAISE_VARARGS", "RERAISE"):
                    return
            index += 1
            if index < len(self._instructions) and self._instructions[index].is_jump_target:
                self._reach(index, _State(tuple(self._stack), dict(self._local)))
                return

    def _is_update(self, index: int) -> bool:
        """Whether what an instruction reads is stored again: `x += 1`, of which nothing depends."""
        one, *rest = self._instructions[index : index + 7]
        names = [other.opname for other in rest]
        if names[1:2] != ["BINARY_OP"] or not rest[1].argrepr.endswith("="):
            return False
        stored = next((other for other in rest[2:] if other.opname != "SWAP"), None)
        if stored is None or not stored.opname.startswith("STORE"):
            return False
        return one.opname == "BINARY_SUBSCR" or stored.argval == one.argval

    def _jump(self, one: dis.Instruction) -> None:
        target = self._index[one.argval]
        if one.opname.startswith(("POP_JUMP", "JUMP_IF")) and "NONE" not in one.opname:
            self._reader.truth(self._item(1))
        if one.opname == "FOR_ITER":
            element = self._reader.contents(self._stack[-1]) if self._stack else UNKNOWN
            done = [*self._stack, UNKNOWN] if _HAS_END else self._stack[:-1]
            self._reach(target, _State(tuple(done), dict(self._local)))
            self._push(element)
            return
        before = list(self._stack)
        self._adjust(dis.stack_effect(one.opcode, one.arg, jump=True))
        self._reach(target, _State(tuple(self._stack), dict(self._local)))
        self._stack = before
        self._adjust(dis.stack_effect(one.opcode, one.arg, jump=False))

    def _step(self, one: dis.Instruction) -> None:
        handler = HANDLERS.get(one.opname)
        if handler is not None:
            before = list(self._stack)
            try:
                handler(self, one)
            except Exception as error:  # noqa: BLE001 — of objects that the function may never ask
                self._reader.lose(
                    f"what {self._name} reads by {one.opname} {one.argrepr}",
                    f"and looking at it raises {type(error).__name__}",
                )
                self._stack = before
                self._adjust(dis.stack_effect(one.opcode, one.arg))
            return
        effect = dis.stack_effect(one.opcode, one.arg)
        for value in self._stack[effect - 1 :] if effect < 0 else ():
            self._reader.contents(value)
        self._adjust(effect)
        if effect < 0 and self._stack:  # what an operation on several values gives
            self._stack[-1] = UNKNOWN


_JUMPS: Final = frozenset({*dis.hasjrel, *dis.hasjabs})
_ALWAYS: Final = frozenset(
    {"JUMP_FORWARD", "JUMP_BACKWARD", "JUMP_BACKWARD_NO_INTERRUPT", "JUMP", "JUMP_NO_INTERRUPT"}
)
"""Jumps that are made in any case."""

_HAS_END: Final = "END_FOR" in dis.opmap
"""Whether a loop that is over leaves its iterator, and a value above it, to ``END_FOR``."""
