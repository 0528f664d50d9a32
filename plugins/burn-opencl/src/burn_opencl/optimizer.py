"""Steps of optimizers: one kernel for many parameters and their states."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, Unpack

from burn.plugin_api import (
    AdagradAttributes,
    AdamAttributes,
    AdanAttributes,
    LionAttributes,
    RmspropAttributes,
    SgdAttributes,
    adam_rates,
    adan_rate,
    check_lists,
    check_momentum,
)
from burn_opencl.base import OpenClOps
from burn_opencl.buffers import Buffer
from burn_opencl.dtypes import DTYPE_CODES, accumulator_dtype, c_type_of, check_dtypes
from burn_opencl.limits import SMALL_GROUP_ITEMS
from burn_opencl.scalars import signed_scalar_bits

__all__ = ["OptimizerOps"]

_MAX_BYTES: Final = 1024
"""Size of the arguments of a kernel that every device takes.

OpenCL has no arrays of buffers, so each is an argument of its own: one launch of Adam is for up to
9 parameters. To join the parameters in one buffer would take a copy, thus a launch, for each
gradient.
"""


class OptimizerOps(OpenClOps):
    """Steps of optimizers; each element is read and written once."""

    def sgd_step(
        self,
        parameters: list[Buffer],
        gradients: list[Buffer],
        velocities: list[Buffer],
        **attributes: Unpack[SgdAttributes],
    ) -> tuple[Buffer, ...]:
        """The formula of the op."""
        check_lists(parameters, gradients, optional=[velocities])
        check_momentum(attributes["momentum"], velocities)
        numbers = (
            attributes["learning_rate"],
            attributes["momentum"],
            1.0 - attributes["dampening"],
            attributes["weight_decay"],
            attributes["nesterov"],
        )
        return self._step("sgd_step", [parameters, gradients, velocities], (0, 2), numbers)

    def adam_step(
        self,
        parameters: list[Buffer],
        gradients: list[Buffer],
        first_moments: list[Buffer],
        second_moments: list[Buffer],
        largest_moments: list[Buffer],
        **attributes: Unpack[AdamAttributes],
    ) -> tuple[Buffer, ...]:
        """The formula of the op."""
        lists = [parameters, gradients, first_moments, second_moments]
        check_lists(*lists, optional=[largest_moments])
        weight_decay, learning_rate = attributes["weight_decay"], attributes["learning_rate"]
        beta1, beta2 = attributes["beta1"], attributes["beta2"]
        numbers = (
            1.0 - learning_rate * weight_decay if attributes["decoupled"] else 1.0,
            0.0 if attributes["decoupled"] else weight_decay,
            *(beta1, 1.0 - beta1, beta2, 1.0 - beta2),
            *adam_rates(attributes["step"], learning_rate, beta1, beta2),
            attributes["epsilon"],
        )
        return self._step("adam_step", [*lists, largest_moments], (0, 2, 3, 4), numbers)

    def adagrad_step(
        self,
        parameters: list[Buffer],
        gradients: list[Buffer],
        sums: list[Buffer],
        **attributes: Unpack[AdagradAttributes],
    ) -> tuple[Buffer, ...]:
        """The formula of the op."""
        check_lists(parameters, gradients, sums)
        decay = 1.0 + (attributes["step"] - 1) * attributes["learning_rate_decay"]
        numbers = (
            attributes["weight_decay"],
            attributes["learning_rate"] / decay,
            attributes["epsilon"],
        )
        return self._step("adagrad_step", [parameters, gradients, sums], (0, 2), numbers)

    def rmsprop_step(
        self,
        parameters: list[Buffer],
        gradients: list[Buffer],
        second_moments: list[Buffer],
        velocities: list[Buffer],
        first_moments: list[Buffer],
        **attributes: Unpack[RmspropAttributes],
    ) -> tuple[Buffer, ...]:
        """The formula of the op."""
        lists = [parameters, gradients, second_moments, velocities, first_moments]
        check_lists(*lists[:3], optional=lists[3:])
        check_momentum(attributes["momentum"], velocities)
        numbers = (
            attributes["weight_decay"],
            attributes["alpha"],
            1.0 - attributes["alpha"],
            attributes["epsilon"],
            attributes["momentum"],
            attributes["learning_rate"],
        )
        flags = {"VELOCITY": int(bool(velocities)), "CENTERED": int(bool(first_moments))}
        return self._step("rmsprop_step", lists, (0, 2, 3, 4), numbers, **flags)

    def adan_step(
        self,
        parameters: list[Buffer],
        gradients: list[Buffer],
        previous_gradients: list[Buffer],
        first_moments: list[Buffer],
        differences: list[Buffer],
        second_moments: list[Buffer],
        **attributes: Unpack[AdanAttributes],
    ) -> tuple[Buffer, ...]:
        """The formula of the op."""
        lists = [parameters, gradients, previous_gradients]
        lists += [first_moments, differences, second_moments]
        check_lists(*lists)
        step, learning_rate = attributes["step"], attributes["learning_rate"]
        beta1, beta2, beta3 = attributes["beta1"], attributes["beta2"], attributes["beta3"]
        decay = learning_rate * attributes["weight_decay"]
        rate, scale = adam_rates(step, learning_rate, beta1, beta3)
        numbers = (
            1.0 if attributes["proximal"] else 1.0 - decay,
            1.0 + decay if attributes["proximal"] else 1.0,
            *(beta1, 1.0 - beta1, beta2, 1.0 - beta2, beta3, 1.0 - beta3),
            *(rate, adan_rate(step, learning_rate, beta2), scale, attributes["epsilon"]),
        )
        return self._step("adan_step", lists, (0, 3, 4, 5), numbers)

    def lion_step(
        self,
        parameters: list[Buffer],
        gradients: list[Buffer],
        moments: list[Buffer],
        **attributes: Unpack[LionAttributes],
    ) -> tuple[Buffer, ...]:
        """The formula of the op."""
        check_lists(parameters, gradients, moments)
        beta1, beta2 = attributes["beta1"], attributes["beta2"]
        rate = attributes["learning_rate"]
        numbers = (
            1.0 - rate * attributes["weight_decay"],
            rate,
            *(beta1, 1.0 - beta1, beta2, 1.0 - beta2),
        )
        return self._step("lion_step", [parameters, gradients, moments], (0, 2), numbers)

    def _step(
        self,
        name: str,
        lists: list[list[Buffer]],
        outputs: Sequence[int],
        numbers: Sequence[float],
        **flags: int,
    ) -> tuple[Buffer, ...]:
        """Run a step; there is a result for each list of `outputs` that is not empty."""
        launcher, parameters = self.launcher, lists[0]
        dtype = parameters[0].dtype
        check_dtypes(name, *[one for tensors in lists for one in tensors])
        operands = [[launcher.dense(one) for one in tensors] for tensors in lists if tensors]
        results = [
            [launcher.empty(one.shape, dtype) for one in parameters]
            for index in outputs
            if lists[index]
        ]
        arrays = operands + results
        wide = accumulator_dtype(dtype)
        bits = [signed_scalar_bits(float(one), wide) for one in numbers]
        definitions: dict[str, str | int] = {
            "STEP": name,
            "INPUTS": len(operands),
            "OUTPUTS": len(results),
            "NUMBERS": len(numbers),
            **flags,
        }
        room = _MAX_BYTES // 8 - 2 - len(numbers)
        limit = room // (2 + len(operands) + len(arrays))
        for chosen in _launches([one.size for one in parameters], limit, launcher.is_specialized):
            capacity = 1 if len(chosen) == 1 else limit
            self._launch(arrays, chosen, capacity, definitions, bits)
        return tuple([one for tensors in results for one in tensors])

    def _launch(
        self,
        arrays: list[list[Buffer]],
        chosen: list[int],
        capacity: int,
        definitions: Mapping[str, str | int],
        numbers: list[int],
    ) -> None:
        """Run a step of some parameters by a kernel that takes so many of them."""
        launcher, dtype = self.launcher, arrays[0][0].dtype
        padded = chosen + chosen[:1] * (capacity - len(chosen))
        sizes = [arrays[0][index].size for index in padded]
        specialized = launcher.is_specialized(sizes[0])
        group = launcher.specialized_group_items if specialized else SMALL_GROUP_ITEMS
        code = DTYPE_CODES[dtype.name]
        names = [f"a{number}" for number in range(capacity * len(arrays))]
        given = {
            **definitions,
            "TENSORS": capacity,
            "ARGUMENTS": ", ".join([f"GLOBAL void* {one}" for one in names]),
            "POINTERS": ", ".join(names),
            "GROUP_SIZE": group,
        }
        if specialized:
            given["TYPE"] = code
        kernel = launcher.kernel("update", "optimizer.cl", c_type_of(dtype), given)
        groups = [0, *itertools.accumulate([-(-size // group) for size in sizes])]
        inputs = arrays[: int(definitions["INPUTS"])]
        offsets = [one[index].offset for one in inputs for index in padded]
        table = [len(chosen), code, *groups[:-1], *sizes, *offsets, *numbers]
        memories = [one[index].memory for one in arrays for index in padded]
        launcher.run(kernel, groups[len(chosen)] * group, table, memories, group)


def _launches(sizes: list[int], limit: int, is_large: Callable[[int], bool]) -> Iterator[list[int]]:
    """Indices of the parameters of each launch: a large one alone, small ones together."""
    small = []
    for index, size in enumerate(sizes):
        if is_large(size):
            yield [index]
        elif size:
            small.append(index)
    for start in range(0, len(small), limit):
        yield small[start : start + limit]
