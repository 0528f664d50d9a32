"""Steps of optimizers as kernels compute them: one for many parameters, which gets numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

from burn.ops.optimizers.adaptive_optimizer import (
    AdagradAttributes,
    AdanAttributes,
    LionAttributes,
    RmspropAttributes,
    adan_rate,
)
from burn.ops.optimizers.optimizer import (
    AdamAttributes,
    SgdAttributes,
    adam_rates,
    check_lists,
    check_momentum,
)

__all__ = ["FusedSteps"]


class FusedSteps:
    """The ops that are steps of optimizers, for a backend that runs each by one kernel.

    The backend defines `run_step`. Its kernels compute with numbers in an order that this class
    says; those that do not change in a step are computed here, in doubles.
    """

    def run_step(
        self,
        name: str,
        lists: list[list[Any]],
        outputs: Sequence[int],
        numbers: Sequence[float],
        **flags: int,
    ) -> tuple[Any, ...]:
        """Run a step.

        Parameters
        ----------
        name : str
            Of the op.
        lists : list of list
            Its operands, of fitting shapes; those that the op may lack may be empty.
        outputs : sequence of int
            Indices of the lists that the op returns in new arrays, as far as they are not empty.
        numbers : sequence of float
            What the kernel computes with.
        **flags : int
            Whether there are some of the states.

        Returns
        -------
        tuple of primitives
            The new arrays, one list after the other.
        """
        raise NotImplementedError

    def sgd_step(
        self,
        parameters: list[Any],
        gradients: list[Any],
        velocities: list[Any],
        **attributes: Unpack[SgdAttributes],
    ) -> tuple[Any, ...]:
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
        return self.run_step("sgd_step", [parameters, gradients, velocities], (0, 2), numbers)

    def adam_step(
        self,
        parameters: list[Any],
        gradients: list[Any],
        first_moments: list[Any],
        second_moments: list[Any],
        largest_moments: list[Any],
        **attributes: Unpack[AdamAttributes],
    ) -> tuple[Any, ...]:
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
        return self.run_step("adam_step", [*lists, largest_moments], (0, 2, 3, 4), numbers)

    def adagrad_step(
        self,
        parameters: list[Any],
        gradients: list[Any],
        sums: list[Any],
        **attributes: Unpack[AdagradAttributes],
    ) -> tuple[Any, ...]:
        """The formula of the op."""
        check_lists(parameters, gradients, sums)
        decay = 1.0 + (attributes["step"] - 1) * attributes["learning_rate_decay"]
        numbers = (
            attributes["weight_decay"],
            attributes["learning_rate"] / decay,
            attributes["epsilon"],
        )
        return self.run_step("adagrad_step", [parameters, gradients, sums], (0, 2), numbers)

    def rmsprop_step(
        self,
        parameters: list[Any],
        gradients: list[Any],
        second_moments: list[Any],
        velocities: list[Any],
        first_moments: list[Any],
        **attributes: Unpack[RmspropAttributes],
    ) -> tuple[Any, ...]:
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
        return self.run_step("rmsprop_step", lists, (0, 2, 3, 4), numbers, **flags)

    def adan_step(
        self,
        parameters: list[Any],
        gradients: list[Any],
        previous_gradients: list[Any],
        first_moments: list[Any],
        differences: list[Any],
        second_moments: list[Any],
        **attributes: Unpack[AdanAttributes],
    ) -> tuple[Any, ...]:
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
        return self.run_step("adan_step", lists, (0, 3, 4, 5), numbers)

    def lion_step(
        self,
        parameters: list[Any],
        gradients: list[Any],
        moments: list[Any],
        **attributes: Unpack[LionAttributes],
    ) -> tuple[Any, ...]:
        """The formula of the op."""
        check_lists(parameters, gradients, moments)
        beta1, beta2 = attributes["beta1"], attributes["beta2"]
        rate = attributes["learning_rate"]
        numbers = (
            1.0 - rate * attributes["weight_decay"],
            rate,
            *(beta1, 1.0 - beta1, beta2, 1.0 - beta2),
        )
        return self.run_step("lion_step", [parameters, gradients, moments], (0, 2), numbers)
