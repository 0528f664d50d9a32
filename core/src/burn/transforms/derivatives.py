"""Derivatives of functions of tensors, to any order: `grad`, `vjp`, `jvp`, `jacobian`, `hessian`.

A call adds a layer of automatic differentiation to the devices of the arguments, runs the function,
and takes the layer off the results. So a transform of a transform differentiates it: the rules of
gradients are written with ops, which the layer below records.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from burn.dtype import Kind
from burn.errors import DTypeError, OperandTypeError, ShapeError
from burn.functions.creation import eye, ones, zeros, zeros_like
from burn.functions.manipulation import reshape
from burn.transforms._arguments import check_callable, check_like, is_tensor
from burn.transforms._pullback import Pullback, linearize
from burn.transforms.batched import vmap
from burn.tree import flatten_like, paths, unflatten

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["grad", "hessian", "jacobian", "jvp", "value_and_grad", "vjp"]


def grad(
    function: Callable[..., Any], argnums: int | Sequence[int] = 0, *, has_aux: bool = False
) -> Callable[..., Any]:
    """The gradient of a function whose result is one number.

    Parameters
    ----------
    function : callable
        Returns a float tensor with one element; with `has_aux` a pair of it and anything else.
    argnums : int or sequence of int, optional
        Positions of the arguments to differentiate by: tensors or Python floats, or nested
        containers of them (see `burn.tree`). All other arguments are handed on as they are.
    has_aux : bool, optional
        Whether the function returns more than the number.

    Returns
    -------
    callable
        Takes the arguments of the function, and returns the gradient: containers as in the
        argument, a tuple of such for a sequence of `argnums`; with `has_aux` a pair of it and the
        rest of the result. A gradient is zero where the number does not depend on the argument.

    Raises
    ------
    ShapeError
        If the result has several elements; raised by the call, as the errors below.
    OperandTypeError
        If the result is no tensor.
    DTypeError
        If the result, or an argument to differentiate by, is no float tensor.
    ArgumentError
        If there is no argument at a position.

    Notes
    -----
    The function must not write to tensors from outside of it. A gradient of a tracked tensor is
    tracked itself; under ``burn.no_grad()`` it is not.

    See Also
    --------
    value_and_grad : the number as well.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([1.0, 2.0], device="cpu")
    >>> burn.grad(lambda x: (x * x * x).sum())(x)
    Tensor([ 3., 12.], device='cpu:0')
    >>> burn.grad(burn.grad(lambda x: x * x * x))(2.0)
    Tensor(12., device='cpu:0')
    """
    check_callable(function, "grad")
    both = value_and_grad(function, argnums, has_aux=has_aux)

    @functools.wraps(function)
    def gradient(*args: Any, **kwargs: Any) -> Any:
        value, gradients = both(*args, **kwargs)
        return (gradients, value[1]) if has_aux else gradients

    return gradient


def value_and_grad(
    function: Callable[..., Any], argnums: int | Sequence[int] = 0, *, has_aux: bool = False
) -> Callable[..., Any]:
    """A function whose result is one number, with its gradient.

    Parameters
    ----------
    function : callable
        Returns a float tensor with one element; with `has_aux` a pair of it and anything else.
    argnums : int or sequence of int, optional
        Positions of the arguments to differentiate by, as for `grad`.
    has_aux : bool, optional
        Whether the function returns more than the number.

    Returns
    -------
    callable
        Takes the arguments of the function, and returns a pair of its result and the gradient.

    Raises
    ------
    ShapeError, OperandTypeError, DTypeError, ArgumentError
        By the call, as for `grad`.

    Examples
    --------
    >>> import burn
    >>> parameters = {"weight": burn.ones(2, device="cpu"), "bias": 0.5}
    >>> def loss(parameters, x):
    ...     return (parameters["weight"] * x).sum() + parameters["bias"]
    >>> value, gradients = burn.value_and_grad(loss)(parameters, 3.0)
    >>> value.item(), gradients["weight"].tolist(), gradients["bias"].item()
    (6.5, [3.0, 3.0], 1.0)
    """
    check_callable(function, "value_and_grad")

    @functools.wraps(function)
    def both(*args: Any, **kwargs: Any) -> Any:
        pullback, aux = linearize(
            function, args, kwargs, argnums, has_aux=has_aux, operation="grad"
        )
        value = _one_number(pullback)
        start = ones(value.shape, dtype=value.dtype, device=value.device)
        gradients = pullback.pull([start], retain_graph=False)
        return ((value, aux) if has_aux else value), gradients

    return both


def _one_number(pullback: Pullback) -> Tensor:
    """The result of a function to differentiate, which must be one number."""
    hint = "burn.vjp and burn.jacobian differentiate functions with other results"
    if pullback.structure.kind is not None:
        raise OperandTypeError(
            f"the function returns a {pullback.structure.kind.__name__}, not one tensor",
            hint=f"{hint}; has_aux is for a pair of the number and anything else",
            operation="grad",
        )
    (value,) = pullback.primals
    if value.size != 1:
        raise ShapeError(
            f"the function returns a tensor of shape {value.shape}, not one number",
            hint=f"Reduce it with .sum() or .mean(); {hint}",
            operation="grad",
        )
    if value.dtype.kind is not Kind.FLOAT:
        raise DTypeError(
            f"the function returns {value.dtype}; only floats have gradients",
            hint="Return a float tensor; what else it computes goes with has_aux",
            operation="grad",
        )
    return value


def vjp(function: Callable[..., Any], *args: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """The result of a function, and what takes gradients of it to gradients of the arguments.

    Parameters
    ----------
    function : callable
        Returns tensors in any containers; with `has_aux` a pair of them and anything else.
    *args : object
        Its arguments, by all of which it is differentiated: float tensors, Python floats, or
        nested containers of them.
    has_aux : bool, optional
        Whether the function returns more than what is differentiated.

    Returns
    -------
    result : object
        What the function returns.
    pullback : callable
        Takes gradients in the containers of the result (tensors of the shape and dtype of the
        result, or numbers for results with one element; None counts as 0), and returns a tuple of
        the gradients of the arguments. It may be called several times, also inside of `vmap` and
        `grad`.
    aux : object
        With `has_aux`, the rest of the result.

    Raises
    ------
    DTypeError
        If an argument is no float tensor.
    OperandTypeError
        If the function does not return tensors.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([1.0, 2.0], device="cpu")
    >>> y, pullback = burn.vjp(lambda x: x * x, x)
    >>> pullback(burn.asarray([1.0, 10.0], device="cpu"))
    (Tensor([ 2., 40.], device='cpu:0'),)
    """
    check_callable(function, "vjp")
    pullback, aux = linearize(
        function, args, {}, range(len(args)), has_aux=has_aux, operation="vjp"
    )
    result = unflatten(pullback.structure, pullback.primals)
    return (result, pullback, aux) if has_aux else (result, pullback)


def jvp(
    function: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[Any, Any]:
    """The result of a function, and its derivative along a direction.

    Parameters
    ----------
    function : callable
        Returns tensors in any containers.
    primals : sequence
        Its arguments, as for `vjp`.
    tangents : sequence
        The direction: containers, shapes and dtypes as in `primals`.

    Returns
    -------
    result : object
        What the function returns.
    tangent : object
        The product of the Jacobian and the direction, in the containers of the result.

    Raises
    ------
    DTypeError
        If an argument is no float tensor.
    OperandTypeError
        If the function does not return tensors, or the containers of the direction differ.
    ShapeError
        If a shape of the direction differs.

    Notes
    -----
    The pullback of the function is linear in the gradient that it takes, so the pullback of the
    pullback is the product wanted (J. Townsend, "A new trick for calculating Jacobian vector
    products", 2017). Every op with a gradient thus has it, at the cost of one call and two
    backward passes: about four times the work of the function, and the memory of its graph.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([1.0, 2.0], device="cpu")
    >>> burn.jvp(lambda x: x * x, (x,), (burn.asarray([1.0, 10.0], device="cpu"),))
    (Tensor([1., 4.], device='cpu:0'), Tensor([ 2., 40.], device='cpu:0'))
    """
    check_callable(function, "jvp")
    for name, given in (("primals", primals), ("tangents", tangents)):
        if not isinstance(given, (tuple, list)):
            raise OperandTypeError(
                f"{name} is an object of type {type(given).__name__}",
                hint="Both are tuples with an entry for each argument: "
                "burn.jvp(function, (x,), (direction,))",
                operation="jvp",
            )
    arguments = tuple(primals)
    first, _ = linearize(
        function, arguments, {}, range(len(arguments)), has_aux=False, operation="jvp"
    )
    _check_floats(first, "jvp")
    directions = flatten_like(first.argument_structure, tuple(tangents), "jvp")
    names = paths(arguments, "tangents")
    for direction, argument, name in zip(directions, first.arguments, names, strict=True):
        if is_tensor(direction):  # a number, or None for 0, has no shape
            check_like(direction, argument, name, "argument", "jvp")
    points = [zeros_like(primal) for primal in first.primals]

    def transposed(*gradients: Tensor) -> list[Tensor]:
        pulled = first.pull(gradients, retain_graph=True)
        return flatten_like(first.argument_structure, pulled, "jvp")

    second, _ = linearize(
        transposed, tuple(points), {}, range(len(points)), has_aux=False, operation="jvp"
    )
    tangent = second.pull(directions, retain_graph=False)
    return unflatten(first.structure, first.primals), unflatten(first.structure, tangent)


def _check_floats(pullback: Pullback, operation: str) -> None:
    """Raise DTypeError unless all results of a function are floats."""
    for primal in pullback.primals:
        if primal.dtype.kind is not Kind.FLOAT:
            raise DTypeError(
                f"the function returns {primal.dtype}; only floats have derivatives",
                hint="Return it from another function, or convert it with .astype()",
                operation=operation,
            )


def jacobian(function: Callable[..., Any], argnums: int | Sequence[int] = 0) -> Callable[..., Any]:
    """All first derivatives of a function.

    Parameters
    ----------
    function : callable
        Returns float tensors in any containers.
    argnums : int or sequence of int, optional
        Positions of the arguments to differentiate by, as for `grad`.

    Returns
    -------
    callable
        Takes the arguments of the function. For each result (in its containers) it returns the
        containers of the argument with tensors of shape ``result.shape + argument.shape``.

    Raises
    ------
    OperandTypeError, DTypeError, ArgumentError
        By the call, as for `grad`.

    Notes
    -----
    One call of the function, and one backward pass for all elements of the result as a batch: its
    memory is that of the graph of the function times their number.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([1.0, 2.0], device="cpu")
    >>> burn.jacobian(lambda x: burn.stack([x[0] * x[1], x[1]]))(x).tolist()
    [[2.0, 1.0], [0.0, 1.0]]
    """
    check_callable(function, "jacobian")

    @functools.wraps(function)
    def derivatives(*args: Any, **kwargs: Any) -> Any:
        pullback, _ = linearize(
            function, args, kwargs, argnums, has_aux=False, operation="jacobian"
        )
        _check_floats(pullback, "jacobian")
        primals = pullback.primals
        sizes = [primal.size for primal in primals]
        starts = [sum(sizes[:index]) for index in range(len(sizes))]
        if not sum(sizes):
            rows = [
                zeros((0, *argument.shape), dtype=argument.dtype, device=argument.device)
                for argument in pullback.arguments
            ]
        else:
            bases = [
                _basis(primal, start, sum(sizes))
                for primal, start in zip(primals, starts, strict=True)
            ]
            pulled = vmap(lambda *basis: pullback.pull(basis, retain_graph=True))(*bases)
            rows = flatten_like(pullback.argument_structure, pulled, "jacobian")
        blocks = []
        for primal, start in zip(primals, starts, strict=True):
            parts = [
                reshape(row[start : start + primal.size], (*primal.shape, *row.shape[1:]))
                for row in rows
            ]
            blocks.append(unflatten(pullback.argument_structure, parts))
        return unflatten(pullback.structure, blocks)

    return derivatives


def _basis(x: Tensor, start: int, count: int) -> Tensor:
    """For each of `count` elements of all results, its unit vector as far as it lies in `x`."""
    unit = eye(count, x.size, k=-start, dtype=x.dtype, device=x.device)
    return reshape(unit, (count, *x.shape))


def hessian(function: Callable[..., Any], argnums: int | Sequence[int] = 0) -> Callable[..., Any]:
    """All second derivatives of a function whose result is one number.

    Parameters
    ----------
    function : callable
        Returns a float tensor with one element.
    argnums : int or sequence of int, optional
        Positions of the arguments to differentiate by, as for `grad`.

    Returns
    -------
    callable
        Takes the arguments of the function. For one argument of shape s it returns a tensor of
        shape ``s + s``; for containers the containers of the argument, twice nested.

    Raises
    ------
    ShapeError, OperandTypeError, DTypeError, ArgumentError
        By the call, as for `grad`.

    See Also
    --------
    jvp : of ``burn.grad(f)``, the product of the Hessian and a vector without the Hessian.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([1.0, 2.0], device="cpu")
    >>> burn.hessian(lambda x: x[0] * x[0] * x[1])(x).tolist()
    [[4.0, 2.0], [2.0, 0.0]]
    """
    check_callable(function, "hessian")
    return jacobian(grad(function, argnums), argnums)
