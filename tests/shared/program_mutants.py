"""Deliberate bugs of backends that compile whole programs, as data for test_kit_mutations.

Each is a copy of burn-cpu whose `compile` gives a function that runs the operations of a program
one after the other, but for one thing.
"""

import threading
import time

import numpy as np

from burn.device_id import DeviceId
from burn.errors import OutOfRangeError
from burn.ir import Execution, OperationIr, ScalarIr
from burn.ops import resolve
from mutants import Mutant


def program(name, wrap, suite="compiled_calls"):
    """A mutant whose programs are made wrong by a function of the graph and what runs it."""

    def change(right):
        backend = right.__self__

        def compile(graph, device):
            execution = Execution(graph, resolve(backend, DeviceId(0)))
            count = len(graph.inputs)

            def run(*arguments):
                return execution.run(arguments[:count], arguments[count:] or (0, 0))

            return wrap(graph, run)

        return compile

    return Mutant(name, "compile", change, suite)


def keeping(which):
    """Arguments that stay what they were in the first call, by their positions."""

    def wrap(graph, run):
        first = []

        def call(*arguments):
            first[:] = first or arguments
            kept = which(graph)
            return run(
                *(first[k] if k in kept else argument for k, argument in enumerate(arguments))
            )

        return call

    return wrap


def numbers_of(graph):
    return {k for k, source in enumerate(graph.inputs) if isinstance(source, ScalarIr)}


def state_of(graph):
    return set(range(len(graph.inputs), len(graph.inputs) + 2))


def tensors_after_the_first(graph):
    return set(range(1, len(graph.inputs))) - numbers_of(graph)


def in_one_buffer(graph, run):
    """The results of each call in the memory of those before."""
    buffers = []

    def call(*arguments):
        outputs = run(*arguments)
        given = {id(argument) for argument in arguments}
        buffers[:] = buffers or [np.empty_like(output) for output in outputs]
        for buffer, output in zip(buffers, outputs, strict=True):
            buffer[...] = output
        return tuple(
            output if id(output) in given else buffer
            for buffer, output in zip(buffers, outputs, strict=True)
        )

    return call


def copied(graph, run):
    """An output that is an input is another object."""
    return lambda *arguments: tuple(np.array(item) for item in run(*arguments))


def doubled(graph, run):
    """An output that is there twice is two objects; one that is an input is itself."""

    def call(*arguments):
        outputs, given = run(*arguments), {id(argument) for argument in arguments}
        return tuple(output if id(output) in given else np.array(output) for output in outputs)

    return call


def sorted_outputs(graph, run):
    """Outputs of one shape and dtype come in the opposite order."""

    def call(*arguments):
        outputs = run(*arguments)
        alike = {(output.shape, output.dtype) for output in outputs}
        return outputs[::-1] if len(alike) == 1 else outputs

    return call


def first_dtype():
    """Outputs have the dtype that those of the first program had of as many outputs."""
    known = {}

    def wrap(graph, run):
        dtypes = known.setdefault(
            tuple(
                operation.name
                for operation in graph.operations
                if isinstance(operation, OperationIr)
            ),
            [output.dtype for output in graph.outputs],
        )
        return lambda *arguments: tuple(
            item.astype(dtype.numpy) for item, dtype in zip(run(*arguments), dtypes, strict=True)
        )

    return wrap


def by(key):
    """One program for all with the same key."""
    known = {}
    return lambda graph, run: known.setdefault(key(graph), run)


def operations_of(graph):
    return tuple(
        (operation.name, tuple(map(str, operation.inputs)))
        if isinstance(operation, OperationIr)
        else ""
        for operation in graph.operations
    )


def text_without_constants(graph):
    return str(graph.operations), str(graph.inputs), str(graph.outputs)


def leaking(kept_of):
    """Keeps something of each call."""
    kept = []

    def wrap(graph, run):
        def call(*arguments):
            outputs = run(*arguments)
            kept.append(kept_of(arguments, outputs))
            return outputs

        return call

    return wrap


def overwriting(graph, run):
    """The first result overwrites an argument of its shape, also where another tensor has it."""

    def call(*arguments):
        outputs = list(run(*arguments))
        result = outputs[0]
        for argument in arguments:
            is_array = isinstance(argument, np.ndarray) and argument.flags.writeable
            if is_array and (argument.shape, argument.dtype) == (result.shape, result.dtype):
                argument[...] = result
                break
        return tuple(outputs)

    return call


def packed(graph, run):
    """Arguments are read as they lie in memory."""

    def plain(one):
        is_strided = isinstance(one, np.ndarray) and not one.flags.c_contiguous
        return np.array(one.ravel(order="K")).reshape(one.shape) if is_strided else one

    return lambda *arguments: run(*map(plain, arguments))


def without_offset(graph, run):
    """A view begins where the memory begins."""

    def moved(one):
        base = one.base if isinstance(one, np.ndarray) else None
        if not isinstance(base, np.ndarray) or one.dtype != base.dtype or min(one.strides) < 0:
            return one
        return np.lib.stride_tricks.as_strided(base, one.shape, one.strides)

    return lambda *arguments: run(*map(moved, arguments))


def broken_by_an_error(graph, run):
    """After an error the next call gives zeros."""
    failed = []

    def call(*arguments):
        try:
            outputs = run(*arguments)
        except OutOfRangeError:
            failed.append(None)
            raise
        if failed:
            failed.clear()
            return tuple(np.zeros_like(output) for output in outputs)
        return outputs

    return call


def clamping(graph, run):
    """An index out of range is brought into it."""

    def call(*arguments):
        try:
            return run(*arguments)
        except OutOfRangeError:
            numbers = [
                np.clip(argument, 0, 1)
                if getattr(argument, "dtype", None) == np.int64
                else argument
                for argument in arguments
            ]
            return run(*numbers)

    return call


def looking_once(graph, run):
    """Only the first indices of a program are looked at; later ones are brought into the range."""

    def call(*arguments):
        given, seen = list(arguments), False
        for number, argument in enumerate(arguments):
            if getattr(argument, "dtype", None) == np.int64:
                given[number] = np.clip(argument, 0, 3) if seen else argument
                seen = True
        return run(*given)

    return call


def never_freed():
    """What runs a program is kept."""
    kept = []

    def wrap(graph, run):
        kept.append(lambda *arguments: run(*arguments))
        return kept[-1]

    return wrap


def sharing():
    """All programs hand their arguments on by one variable."""
    shared = threading.Event()

    def wrap(graph, run):
        def call(*arguments):
            shared.arguments = arguments
            time.sleep(0.0005)  # where kernels would run
            given = shared.arguments
            return run(*(given if len(given) == len(arguments) else arguments))

        return call

    return wrap


PROGRAM_MUTANTS = [
    program("each run draws the numbers of the first", keeping(state_of)),
    program("the seed of the first run", keeping(lambda graph: {len(graph.inputs)})),
    program("the offset of the first run", keeping(lambda graph: {len(graph.inputs) + 1})),
    program("the step and the learning rate of the first run", keeping(numbers_of)),
    program("captured tensors of the first run", keeping(tensors_after_the_first)),
    program("results in the memory of earlier ones", in_one_buffer),
    program("an argument is handed back as another object", copied),
    program("one result is handed back as two objects", doubled),
    program("results in the opposite order", sorted_outputs),
    program("results of the dtype of another program", first_dtype()),
    program("programs are kept without their attributes", by(operations_of)),
    program("programs are kept without their constants", by(text_without_constants)),
    program("arguments are kept", leaking(lambda arguments, outputs: arguments)),
    program("results are kept", leaking(lambda arguments, outputs: outputs)),
    program("a result overwrites an argument", overwriting),
    program("strides of arguments are ignored", packed),
    program("offsets of arguments are ignored", without_offset),
    program("an error spoils the next run", broken_by_an_error),
    program("an index out of range is brought into it", clamping),
    program("only the first indices are looked at", looking_once),
    program("programs are never freed", never_freed()),
    program("programs share a variable for their arguments", sharing()),
]
