"""Control flow that a trace records: `cond`, `while_loop`, `scan`, `fori_loop`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from burn.devices import running_trace
from burn.dispatch import common_device
from burn.dtype import Kind
from burn.errors import ArgumentError, DeviceMismatchError, OperandTypeError, ShapeError
from burn.functions.creation import arange, asarray, zeros
from burn.functions.manipulation import stack
from burn.functions.normalize import as_flag
from burn.ops.arguments import as_integer, python_number
from burn.transforms._arguments import check_callable, is_tensor
from burn.transforms._steps import (
    Body,
    Branch,
    Carry,
    Condition,
    ScanStep,
    Step,
    check_one,
    device_of,
    truth_of,
)
from burn.tree import flatten, paths, unflatten

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["cond", "fori_loop", "scan", "while_loop"]


def cond(
    predicate: Tensor | bool,
    true_function: Callable[..., Any],
    false_function: Callable[..., Any],
    /,
    *operands: Any,
) -> Any:
    """The result of one of two functions.

    Outside of traces that is an ``if``. In a function of `burn.compile` or `burn.ir.trace` both
    functions are traced, and the program decides at each run which one it runs.

    Parameters
    ----------
    predicate : Tensor or bool
        One boolean.
    true_function, false_function : callable
        What is called with the operands if the predicate is true, and if it is not. They return
        tensors and numbers in containers: both the same ones, of the same shapes and dtypes. They
        may use tensors from outside, and do not write to them.
    *operands : object
        Tensors in any containers, and any other values.

    Returns
    -------
    object
        What the function returns, with tensors instead of numbers. They share elements with no
        other tensor.

    Raises
    ------
    OperandTypeError, DTypeError, ShapeError
        If the predicate is not one boolean, or the results of the functions differ.
    AutodiffError
        If the predicate is another one for each example of `burn.vmap`.
    TraceError
        In a trace, if a function writes to a tensor from outside, or the functions draw different
        amounts of random numbers.

    See Also
    --------
    where : chooses for each element, and computes both.

    Examples
    --------
    >>> import burn
    >>> def safe_root(x):
    ...     return burn.cond(x.sum() > 0, burn.sqrt, burn.zeros_like, x)
    >>> x = burn.asarray([4.0, 9.0], device="cpu")
    >>> burn.ir.trace(safe_root, x)(-x)
    Tensor([0., 0.], device='cpu:0')
    >>> burn.grad(lambda x: safe_root(x).sum())(x)
    Tensor([0.25      , 0.16666667], device='cpu:0')
    """
    operation = "cond"
    for function in (true_function, false_function):
        check_callable(function, operation)
    leaves, structure = flatten(operands)
    device = device_of([predicate, *leaves])
    truth = truth_of(predicate, "the predicate", operation)
    first = Body(true_function, structure, "true_function", operation, device)
    second = Branch(false_function, structure, "false_function", operation, device, first)
    if isinstance(truth, bool):
        return (first if truth else second).call(leaves)
    from burn.transforms._bodies import record_cond

    outputs = record_cond(truth, (first, second), leaves)
    return unflatten(first.result, outputs)


def while_loop(condition: Callable[..., Any], body: Callable[..., Any], initial: Any, /) -> Any:
    """What a function makes of a value, again and again while another function says true.

    Outside of traces that is a ``while``. In a function of `burn.compile` or `burn.ir.trace` both
    functions are traced, and the program decides before each iteration whether there is one.

    Parameters
    ----------
    condition : callable
        From the value to one boolean.
    body : callable
        From the value to the next one, in the same containers, of the same shapes and dtypes.
    initial : object
        The first value: tensors and numbers in any containers.

    Returns
    -------
    object
        The last value, in tensors that share elements with no other one, also without iterations.

    Raises
    ------
    OperandTypeError, DTypeError, ShapeError
        If the condition is not one boolean, or the body returns another kind of value.
    AutodiffError
        If the condition is another one for each example of `burn.vmap`; or in a trace, if what the
        loop uses is tracked.
    TraceError
        In a trace, if a function writes to a tensor from outside, or draws random numbers.

    See Also
    --------
    fori_loop, scan : loops of a known length, which are differentiable in a trace.

    Examples
    --------
    >>> import burn
    >>> def halvings(x):
    ...     last, count = burn.while_loop(
    ...         lambda value: value[0] > 1.0, lambda value: (value[0] / 2, value[1] + 1), (x, 0)
    ...     )
    ...     return count
    >>> program = burn.ir.trace(halvings, burn.asarray(100.0, device="cpu"))
    >>> program(burn.asarray(10.0, device="cpu")).item()
    4
    """
    operation = "while_loop"
    for function in (condition, body):
        check_callable(function, operation)
    carry = Carry(initial, operation)
    if not carry.leaves:
        raise ArgumentError(
            "initial has no tensor and no number",
            hint="A loop changes a value",
            operation=operation,
        )
    goes_on = Condition(condition, carry.arguments, "condition", operation, carry.device)
    step = Step(body, carry.arguments, "body", operation, carry.device, carry)
    if running_trace() is not None:
        from burn.transforms._bodies import record_while_loop

        return unflatten(carry.structure, record_while_loop(goes_on, step, carry.leaves))
    leaves: Sequence[Tensor] = carry.leaves
    while goes_on.truth(leaves):
        leaves = step(leaves)
    return carry.last(leaves)


def scan(
    function: Callable[..., Any],
    initial: Any,
    xs: Any = None,
    /,
    length: int | None = None,
    *,
    reverse: bool = False,
) -> tuple[Any, Any]:
    """A function for each element along the first axis of tensors, with a value that it carries.

    Outside of traces that is a ``for``. In a function of `burn.compile` or `burn.ir.trace` the
    function is traced once, and its program runs for each element.

    Parameters
    ----------
    function : callable
        ``function(carry, x)`` returns a pair: the next carry, in the same containers, of the same
        shapes and dtypes; and tensors and numbers in any containers, or None.
    initial : object
        The first carry: tensors and numbers in any containers, or None.
    xs : object
        Tensors in any containers, whose first axes have one length, or None.
    length : int, optional
        That length; it is needed where there are no `xs`.
    reverse : bool, optional
        Whether to begin with the last element. What is stacked is in the order of the elements.

    Returns
    -------
    carry : object
        The last carry, in tensors that share elements with no other one, also without iterations.
    ys : object
        What else the function returned, stacked along a new first axis.

    Raises
    ------
    OperandTypeError, DTypeError, ShapeError
        If the function returns no pair, or another kind of carry than `initial`.
    ArgumentError
        If there is no length, or a negative one.
    TraceError
        In a trace, if the function writes to a tensor from outside.

    Notes
    -----
    Random numbers are those of the loop. The gradient of a scan in a trace is a scan in the other
    direction; what it needs of each iteration is kept. In a trace the carry may have quantized
    tensors, but neither `xs` nor what is stacked.

    Examples
    --------
    >>> import burn
    >>> def balances(deposits, rate):
    ...     def year(balance, deposit):
    ...         balance = balance * rate + deposit
    ...         return balance, balance
    ...     return burn.scan(year, burn.zeros_like(deposits[0]), deposits)
    >>> deposits = burn.asarray([100.0, 100.0, 100.0], device="cpu")
    >>> last, all_years = balances(deposits, 1.5)
    >>> all_years.tolist()
    [100.0, 250.0, 475.0]
    >>> burn.grad(lambda x: balances(x, 1.5)[0])(deposits).tolist()
    [2.25, 1.5, 1.0]
    """
    operation = "scan"
    check_callable(function, operation)
    reverse = as_flag(reverse, "reverse", operation)
    return _scan(function, initial, xs, length, reverse=reverse, operation=operation)


def fori_loop(
    lower: int | Tensor, upper: int | Tensor, body: Callable[..., Any], initial: Any, /
) -> Any:
    """What a function makes of an index and a value, for each index in a range.

    Outside of traces that is a ``for`` over ``range(lower, upper)``.

    Parameters
    ----------
    lower, upper : int or Tensor
        The first index, and the one after the last. In a trace a loop with integers is a `scan`,
        which is differentiable; one with tensors is a `while_loop`.
    body : callable
        ``body(index, value)`` returns the next value, in the same containers, of the same shapes
        and dtypes. The index is a tensor without axes, of the dtype of the bounds that are tensors,
        else of the default integer dtype.
    initial : object
        The first value: tensors and numbers in any containers.

    Returns
    -------
    object
        The last value, in tensors that share elements with no other one, also without iterations.

    Raises
    ------
    OperandTypeError, DTypeError, ShapeError
        If a bound is not one integer, or the body returns another kind of value.
    AutodiffError
        If a bound is another one for each example of `burn.vmap`; or in a trace, if it is a tensor,
        and what the loop uses is tracked.
    TraceError
        In a trace, as for `scan` and `while_loop`.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([1.0, 2.0], device="cpu")
    >>> burn.fori_loop(0, 3, lambda i, y: y * x + i, burn.ones_like(x)).tolist()
    [4.0, 12.0]
    """
    operation = "fori_loop"
    check_callable(body, operation)
    bounds = [_bound(item, name) for item, name in ((lower, "lower"), (upper, "upper"))]
    given = [bound for bound in bounds if is_tensor(bound)]
    dtype = given[0].dtype if given else None
    device = device_of([*given, *flatten(initial)[0]])
    try:
        functools.reduce(common_device, [tensor.device for tensor in given], None)
    except DeviceMismatchError as error:
        error.operation = operation
        raise
    if given and running_trace() is not None:
        start, stop = [asarray(bound, dtype=dtype, device=device) for bound in bounds]
        _, value = while_loop(
            lambda state: state[0] < stop,
            lambda state: (state[0] + 1, body(*state)),
            (start, initial),
        )
        return value
    first, end = [int(bound.item()) if is_tensor(bound) else bound for bound in bounds]
    count = max(0, end - first)
    indices = arange(first, first + count, dtype=dtype, device=device)
    value, _ = _scan(
        lambda value, index: (body(index, value), None),
        initial,
        indices,
        count,
        reverse=False,
        operation=operation,
    )
    return value


def _scan(
    function: Callable[..., Any],
    initial: Any,
    xs: Any,
    length: int | None,
    *,
    reverse: bool,
    operation: str,
) -> tuple[Any, Any]:
    rows, structure = flatten(xs)
    length = _length(rows, paths(xs, "xs"), length, operation)
    carry = Carry(initial, operation, rows)
    body = ScanStep(function, structure, operation, carry)
    if running_trace() is not None:
        from burn.transforms._bodies import record_scan
        from burn.transforms.tracing import TensorSpec

        elements = [TensorSpec(row.shape[1:], row.dtype, row.device) for row in rows]
        outputs = record_scan(
            body, carry.leaves, rows, elements, operation, length=length, reverse=reverse
        )
        if outputs is not None:
            count = len(carry.leaves)
            return (
                unflatten(carry.structure, outputs[:count]),
                unflatten(body.stacked, outputs[count:]),
            )
    if not length:
        return carry.last(carry.leaves), _nothing(body, carry, rows)
    leaves: Sequence[Tensor] = carry.leaves
    made = []
    for step in range(length):
        position = length - 1 - step if reverse else step
        result = body([*leaves, *[row[position] for row in rows]])
        leaves = result[: len(carry.leaves)]
        made.append(result[len(carry.leaves) :])
    if reverse:
        made.reverse()
    ys = [stack(column) for column in zip(*made, strict=True)]
    return carry.last(leaves), unflatten(body.stacked, ys)


def _nothing(body: ScanStep, carry: Carry, rows: Sequence[Tensor]) -> Any:
    """What is stacked of a scan over nothing."""
    from burn.transforms.tracing import TensorSpec, specs

    elements = [TensorSpec(row.shape[1:], row.dtype, row.device) for row in rows]
    found = specs(lambda *leaves: body(leaves), (*carry.leaves, *elements))
    ys = [
        zeros((0, *tensor.shape), dtype=tensor.dtype, device=tensor.device)
        for tensor in found[len(carry.leaves) :]
    ]
    return unflatten(body.stacked, ys)


def _length(rows: Sequence[Any], names: Sequence[str], length: Any, operation: str) -> int:
    """The length of the first axes of tensors."""
    if length is not None:
        length = as_integer(python_number(length), "length", operation, least=0)
    first = "length"
    for row, name in zip(rows, names, strict=True):
        if not is_tensor(row):
            raise OperandTypeError(
                f"{name} is an object of type {type(row).__name__}, no tensor",
                hint="burn.asarray() makes a tensor of numbers, sequences and arrays",
                operation=operation,
            )
        if not row.shape:
            raise ShapeError(
                f"{name} has no axes", hint="A scan is along the first axis", operation=operation
            )
        if length is None:
            length, first = row.shape[0], name
        if row.shape[0] != length:
            raise ShapeError(
                f"the first axis of {name} has length {row.shape[0]}, and {first} says {length}",
                operation=operation,
            )
    if length is None:
        raise ArgumentError(
            "there is nothing to say how long the loop is",
            hint="Give it xs, or a length",
            operation=operation,
        )
    return int(length)


def _bound(value: Any, name: str) -> Any:
    """A bound of a loop: an integer, or a tensor of one."""
    if not is_tensor(value):
        return as_integer(python_number(value), name, "fori_loop")
    if value.dtype.kind not in Kind.INTEGER:
        raise OperandTypeError(
            f"{name} is a tensor of {value.dtype}",
            hint="Bounds are integers",
            operation="fori_loop",
        )
    check_one(value, name, "fori_loop")
    return value
