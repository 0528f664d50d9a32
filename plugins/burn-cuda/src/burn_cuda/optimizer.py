"""Steps of optimizers: one kernel for a parameter and its state."""

from __future__ import annotations

from burn.plugin_api import adam_rates, check_same_shapes
from burn_cuda.base import Array, CudaOps
from burn_cuda.kernels import c_type

__all__ = ["OptimizerOps"]


class OptimizerOps(CudaOps):
    """Optimizer steps, each in one kernel."""

    def sgd_step(
        self,
        parameter: Array,
        gradient: Array,
        velocity: Array,
        *,
        learning_rate: float,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
    ) -> tuple[Array, Array]:
        """The formula of the op."""
        numbers = (float(learning_rate), float(momentum), float(weight_decay), int(nesterov))
        first, second = self._step("sgd_step", 2, (parameter, gradient, velocity), numbers)
        return first, second

    def adam_step(
        self,
        parameter: Array,
        gradient: Array,
        first_moment: Array,
        second_moment: Array,
        *,
        step: int,
        learning_rate: float,
        beta1: float = 0.9,
        beta2: float = 0.999,
        epsilon: float = 1e-8,
        weight_decay: float = 0.0,
    ) -> tuple[Array, Array, Array]:
        """The formula of the op."""
        rate, scale = adam_rates(step, learning_rate, beta1, beta2)
        decay = 1.0 - learning_rate * weight_decay
        numbers = (decay, beta1, 1.0 - beta1, beta2, 1.0 - beta2, rate, scale, epsilon)
        operands = (parameter, gradient, first_moment, second_moment)
        results = self._step("adam_step", 3, operands, tuple(map(float, numbers)))
        return results[0], results[1], results[2]

    def _step(
        self, name: str, count: int, operands: tuple[Array, ...], numbers: tuple[float, ...]
    ) -> list[Array]:
        launcher = self.launcher
        first = operands[0]
        check_same_shapes(*operands)
        if any(one.dtype is not first.dtype for one in operands):
            raise TypeError(f"{name} of different dtypes")
        dense = [launcher.dense(one) for one in operands]
        results = [launcher.empty(first.shape, first.dtype) for _ in range(count)]
        kernel = launcher.kernel(name, "optimizer.cu", T=c_type(launcher.dtypes[first.dtype]))
        launcher.run(kernel, first.size, *dense, *results, *numbers, first.size)
        return results
