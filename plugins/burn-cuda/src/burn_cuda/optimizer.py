"""Steps of optimizers: one kernel for many parameters and their states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Unpack

import numpy as np

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
from burn_cuda.base import Array, CudaOps
from burn_cuda.kernels import THREADS, c_type
from burn_cuda.launcher import packed

__all__ = ["OptimizerOps"]

_EACH: Final = 4
"""Elements that a thread computes."""

_MAX_BYTES: Final = 4096
"""Size of the arguments of a kernel, on every GPU and driver.

The table of arrays is an argument, so one launch of Adam is for up to 55 parameters. A table in
device memory would have no limit, but would be uploaded before each launch, which takes longer than
a second launch.
"""


class OptimizerOps(CudaOps):
    """Steps of optimizers; each element is read and written once."""

    def sgd_step(
        self,
        parameters: list[Array],
        gradients: list[Array],
        velocities: list[Array],
        **attributes: Unpack[SgdAttributes],
    ) -> tuple[Array, ...]:
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
        parameters: list[Array],
        gradients: list[Array],
        first_moments: list[Array],
        second_moments: list[Array],
        largest_moments: list[Array],
        **attributes: Unpack[AdamAttributes],
    ) -> tuple[Array, ...]:
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
        parameters: list[Array],
        gradients: list[Array],
        sums: list[Array],
        **attributes: Unpack[AdagradAttributes],
    ) -> tuple[Array, ...]:
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
        parameters: list[Array],
        gradients: list[Array],
        second_moments: list[Array],
        velocities: list[Array],
        first_moments: list[Array],
        **attributes: Unpack[RmspropAttributes],
    ) -> tuple[Array, ...]:
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
        parameters: list[Array],
        gradients: list[Array],
        previous_gradients: list[Array],
        first_moments: list[Array],
        differences: list[Array],
        second_moments: list[Array],
        **attributes: Unpack[AdanAttributes],
    ) -> tuple[Array, ...]:
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
        parameters: list[Array],
        gradients: list[Array],
        moments: list[Array],
        **attributes: Unpack[LionAttributes],
    ) -> tuple[Array, ...]:
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
        lists: list[list[Array]],
        outputs: Sequence[int],
        numbers: Sequence[float],
        **flags: int,
    ) -> tuple[Array, ...]:
        """Run a step; there is a result for each list of `outputs` that is not empty."""
        launcher, parameters = self.launcher, lists[0]
        dtype = parameters[0].dtype
        if any(one.dtype is not dtype for tensors in lists for one in tensors):
            raise TypeError(f"{name} of different dtypes")
        operands = [[launcher.dense(one) for one in tensors] for tensors in lists if tensors]
        results = [
            [launcher.empty(one.shape, dtype) for one in parameters]
            for index in outputs
            if lists[index]
        ]
        arrays = operands + results
        tensors = (_MAX_BYTES // 8 - 1 - len(numbers)) // (2 + len(arrays))
        kernel = launcher.kernel(
            "update",
            "optimizer.cu",
            T=c_type(launcher.dtypes[dtype]),
            STEP=name,
            INPUTS=len(operands),
            OUTPUTS=len(results),
            NUMBERS=len(numbers),
            TENSORS=tensors,
            THREADS=THREADS,
            EACH=_EACH,
            **flags,
        )
        address = launcher.runtime.address
        filled = [index for index, one in enumerate(parameters) if one.size]
        for start in range(0, len(filled), tensors):
            chosen = filled[start : start + tensors]
            sizes = np.array([parameters[index].size for index in chosen], np.int64)
            ends = np.cumsum(-(-sizes // (THREADS * _EACH)))
            table = np.zeros((2 + len(arrays), tensors), np.int64)
            table[0, 1 : len(chosen)] = ends[:-1]
            table[1, : len(chosen)] = sizes
            for row, one in zip(table[2:], arrays, strict=True):
                row[: len(chosen)] = [address(one[index]) for index in chosen]
            values = np.array(numbers, np.float64).view(np.int64)
            arguments = packed(np.concatenate([table.reshape(-1), values]))
            launcher.run_blocks(kernel, int(ends[-1]), arguments, len(chosen))
        return tuple([one for tensors in results for one in tensors])
