"""Optimizer steps: one kernel for a parameter and its state."""

from __future__ import annotations

from burn.plugin_api import adam_rates, check_same_shapes
from burn_opencl.base import OpenClOps
from burn_opencl.buffers import Buffer
from burn_opencl.dtypes import DTYPE_CODES, accumulator_dtype, c_type_of, check_dtypes
from burn_opencl.limits import SMALL_GROUP_ITEMS
from burn_opencl.scalars import signed_scalar_bits

__all__ = ["OptimizerOps"]


class OptimizerOps(OpenClOps):
    """Optimizer steps; each element is read and written once."""

    def sgd_step(
        self,
        parameter: Buffer,
        gradient: Buffer,
        velocity: Buffer,
        *,
        learning_rate: float,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
    ) -> tuple[Buffer, Buffer]:
        """Computed in one kernel."""
        numbers = (learning_rate, momentum, weight_decay, float(nesterov))
        first, second = self._step("sgd_step", 2, (parameter, gradient, velocity), numbers)
        return first, second

    def adam_step(
        self,
        parameter: Buffer,
        gradient: Buffer,
        first_moment: Buffer,
        second_moment: Buffer,
        *,
        step: int,
        learning_rate: float,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> tuple[Buffer, Buffer, Buffer]:
        """Computed in one kernel."""
        rate, scale = adam_rates(step, learning_rate, beta1, beta2)
        decay = 1.0 - learning_rate * weight_decay
        numbers = (decay, beta1, 1.0 - beta1, beta2, 1.0 - beta2, rate, scale, epsilon)
        operands = (parameter, gradient, first_moment, second_moment)
        results = self._step("adam_step", 3, operands, numbers)
        return results[0], results[1], results[2]

    def _step(
        self, name: str, count: int, operands: tuple[Buffer, ...], numbers: tuple[float, ...]
    ) -> list[Buffer]:
        launcher = self.launcher
        first = operands[0]
        check_same_shapes(*operands)
        check_dtypes(name, *operands)
        dense = [launcher.dense(one) for one in operands]
        results = [launcher.empty(first.shape, first.dtype) for _ in range(count)]
        specialized = launcher.is_specialized(first.size)
        group = launcher.specialized_group_items if specialized else SMALL_GROUP_ITEMS
        code = DTYPE_CODES[first.dtype.name]
        definitions: dict[str, str | int] = {"GROUP_SIZE": group}
        if specialized:
            definitions["TYPE"] = code
        kernel = launcher.kernel(name, "optimizer.cl", c_type_of(first.dtype), definitions)
        wide = accumulator_dtype(first.dtype)
        bits = [signed_scalar_bits(float(one), wide) for one in numbers]
        offsets = [one.offset for one in dense]
        parameters = [first.size, *offsets, *[0] * (4 - len(offsets))]
        parameters += bits + [0] * (8 - len(bits)) + [code]
        memories = [one.memory for one in (*dense, *results)]
        launcher.run(kernel, first.size, parameters, memories, group)
        return results
