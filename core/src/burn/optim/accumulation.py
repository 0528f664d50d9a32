"""Gradients of several backward passes, added up for one step."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from weakref import ref

from burn.devices import running_trace
from burn.dispatch import Gradients
from burn.errors import ArgumentError, OperandTypeError, TraceError
from burn.functions.normalize import as_flag
from burn.tensor.tensor import Tensor
from burn.tree import leaves, map as map_tree

if TYPE_CHECKING:
    from burn.devices import Trace

__all__ = ["GradientAccumulator"]


class GradientAccumulator:
    """Adds up the gradients of several passes, for a step with a batch that does not fit at once.

    A function that is compiled adds all of them and takes the sum, or does neither.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([1.0, 2.0], device=burn.Device("cpu").autodiff()).require_grad()
    >>> optimizer = burn.optim.SGD([x], learning_rate=0.25)
    >>> accumulator = burn.optim.GradientAccumulator()
    >>> for factor in (1.0, 3.0):
    ...     accumulator.add((x * factor).sum().backward())
    >>> len(accumulator)
    2
    >>> optimizer.step(accumulator.take())
    >>> x.tolist()
    [0.5, 1.5]
    """

    _holds_in_trace: Final = (
        "a GradientAccumulator whose sum the function does not take (call take() in it)"
    )
    """How an error names it that keeps gradients of a trace."""

    def __init__(self) -> None:
        self._total: Any = None
        self._count = 0
        self._trace: ref[Trace] | None = None

    def __len__(self) -> int:
        """Number of passes."""
        return self._count

    def add(self, gradients: Any) -> None:
        """Add the gradients of a pass.

        Parameters
        ----------
        gradients : Gradients, or containers of tensors
            What ``loss.backward()`` or a function of `burn.grad` returned, of the same parameters
            as before. A parameter may lack a gradient in some of the passes of ``backward``.

        Returns
        -------
        None
            `take` has the sum.

        Raises
        ------
        OperandTypeError
            If some passes gave Gradients and others containers, or other containers; or if there
            is something else than tensors in them.
        TraceError
            In a function that is traced, if some were added outside.
        """
        self._check_trace("GradientAccumulator.add")
        if self._count and isinstance(gradients, Gradients) is not isinstance(
            self._total, Gradients
        ):
            raise OperandTypeError(
                f"got {type(gradients).__name__} after {type(self._total).__name__}",
                hint="Add the results of backward() alone, or of burn.grad alone",
                operation="GradientAccumulator.add",
            )
        if not isinstance(gradients, Gradients) and not _are_tensors(leaves(gradients)):
            raise OperandTypeError(
                f"got an object of type {type(gradients).__name__}, without gradients",
                hint="Add what loss.backward() or a function of burn.grad returned",
                operation="GradientAccumulator.add",
            )
        if not self._count:
            self._total = gradients
        elif isinstance(gradients, Gradients):
            self._total = self._total.merge(gradients, lambda x, y: x + y)
        else:
            self._total = map_tree(lambda x, y: x + y, self._total, gradients)
        self._count += 1

    def take(self, *, mean: bool = True) -> Any:
        """The gradients so far; the next `add` begins anew.

        Parameters
        ----------
        mean : bool
            Whether they are divided by the number of passes: right where the loss is a mean over a
            batch. Else they are the sum.

        Returns
        -------
        Gradients, or containers of tensors
            For `Optimizer.step`.

        Raises
        ------
        ArgumentError
            If nothing was added.
        TraceError
            In a function that is traced, if they were added outside.
        """
        self._check_trace("GradientAccumulator.take")
        if not self._count:
            raise ArgumentError(
                "no gradients were added",
                hint="Call add(loss.backward()) for each pass before",
                operation="GradientAccumulator.take",
            )
        total, factor = self._total, 1.0 / self._count
        if as_flag(mean, "mean", "GradientAccumulator.take") and self._count > 1:
            is_mapping = isinstance(total, Gradients)
            total = (
                total.map(lambda x: x * factor)
                if is_mapping
                else map_tree(lambda x: x * factor, total)
            )
        self._total, self._count = None, 0
        return total

    def _is_empty(self) -> bool:
        return self._count == 0

    def _check_trace(self, operation: str) -> None:
        """Raise TraceError if the gradients so far are not of the running trace.

        Those of a trace that has ended are forgotten: it has failed.
        """
        trace = running_trace()
        if self._trace is not None and (trace is None or self._trace() is not trace):
            self._total, self._count = None, 0
        elif self._trace is None and trace is not None and self._count:
            raise TraceError(
                "gradients were added outside of the function that is traced",
                hint="Add all of them in that function, and take the sum there; or call add and "
                "take outside of it, with gradients that it returns",
                operation=operation,
            )
        elif trace is not None and trace.watches and not self._count:
            # Gradients that are added before a later call trace the function again, which raises.
            trace.watch(self._is_empty)
        self._trace = None if trace is None else ref(trace)


def _are_tensors(found: list[Any]) -> bool:
    return bool(found) and all(isinstance(item, Tensor) for item in found)
