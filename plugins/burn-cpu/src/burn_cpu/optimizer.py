"""Optimizer steps with as few passes over memory as NumPy allows."""

from __future__ import annotations

from typing import Unpack

import numpy as np

from burn.plugin_api import AdamAttributes, SgdAttributes, adam_rates, check_same_shapes
from burn_cpu.base import Array, CpuOps
from burn_cpu.constants import constant


class OptimizerOps(CpuOps):
    """Steps that write to new arrays only."""

    def sgd_step(
        self,
        parameter: Array,
        gradient: Array,
        velocity: Array,
        **attributes: Unpack[SgdAttributes],
    ) -> tuple[Array, Array]:
        """The formula of the op, with one temporary."""
        check_same_shapes(parameter, gradient, velocity)
        dtype = parameter.dtype
        if dtype.itemsize < 4:
            wide = [array.astype(np.float32) for array in (parameter, gradient, velocity)]
            results = self.sgd_step(*wide, **attributes)
            return results[0].astype(dtype), results[1].astype(dtype)
        momentum, weight_decay = attributes["momentum"], attributes["weight_decay"]
        rate = constant(attributes["learning_rate"], dtype)
        if weight_decay:
            decayed = np.multiply(parameter, constant(weight_decay, dtype))
            decayed += gradient
            gradient = decayed
        if momentum:
            velocity = np.multiply(velocity, constant(momentum, dtype))
            velocity += gradient
        else:
            velocity = gradient
        if attributes["nesterov"]:
            change = np.multiply(velocity, constant(momentum, dtype))
            change += gradient
            change *= rate
        else:
            change = np.multiply(velocity, rate)
        return np.subtract(parameter, change), velocity

    def adam_step(
        self,
        parameter: Array,
        gradient: Array,
        first_moment: Array,
        second_moment: Array,
        **attributes: Unpack[AdamAttributes],
    ) -> tuple[Array, Array, Array]:
        """The formula of the op, with two temporaries."""
        check_same_shapes(parameter, gradient, first_moment, second_moment)
        dtype = parameter.dtype
        if dtype.itemsize < 4 or not parameter.shape:
            return self._converted((parameter, gradient, first_moment, second_moment), **attributes)
        learning_rate, weight_decay = attributes["learning_rate"], attributes["weight_decay"]
        beta1, beta2 = attributes["beta1"], attributes["beta2"]
        rate, scale = adam_rates(attributes["step"], learning_rate, beta1, beta2)
        first, second = self._moments(gradient, first_moment, second_moment, beta1, beta2)
        if not rate:  # the divisor below is divided by the rate
            return parameter, first, second
        number = dtype.type
        # rate * m / (scale * sqrt(v) + epsilon); dividing by the rate in the divisor saves a pass
        change = np.sqrt(second)
        change *= number(scale / rate)
        change += number(attributes["epsilon"] / rate)
        np.divide(first, change, out=change)
        if weight_decay:
            parameter = parameter * number(1.0 - learning_rate * weight_decay)
        return np.subtract(parameter, change, out=change), first, second

    def _moments(
        self,
        gradient: Array,
        first_moment: Array,
        second_moment: Array,
        beta1: float,
        beta2: float,
    ) -> tuple[Array, Array]:
        """Running means of the gradient and of its square."""
        dtype = gradient.dtype
        first = np.multiply(first_moment, constant(beta1, dtype))
        work = np.multiply(gradient, constant(1.0 - beta1, dtype))
        first += work
        second = np.multiply(second_moment, constant(beta2, dtype))
        np.multiply(gradient, gradient, out=work)
        work *= constant(1.0 - beta2, dtype)
        second += work
        return first, second

    def _converted(
        self, arrays: tuple[Array, ...], **attributes: Unpack[AdamAttributes]
    ) -> tuple[Array, Array, Array]:
        """A step in float32 or wider on arrays with an axis: NumPy scalars have no ``out=``."""
        dtype, shape = arrays[0].dtype, arrays[0].shape
        wide = np.float32 if dtype.itemsize < 4 else dtype
        results = self.adam_step(
            *[array.astype(wide).reshape(shape or (1,)) for array in arrays], **attributes
        )
        parameter, first, second = [one.astype(dtype).reshape(shape) for one in results]
        return parameter, first, second
