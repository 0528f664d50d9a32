"""Sums of products in Einstein's notation."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from burn.errors import ArgumentError, OperandTypeError, ShapeError
from burn.functions.linalg.diagonals import diagonal
from burn.functions.linalg.linear_algebra import matmul
from burn.functions.manipulation import broadcast_to, moveaxis, permute_dims, reshape
from burn.functions.normalize import rank_of
from burn.functions.statistical import sum
from burn.functions.views import independent
from burn.ops.shapes import broadcast_shapes

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["einsum"]

_ELLIPSIS_LABELS: Final = [chr(code) for code in range(0x3B1, 0x3B1 + 24)]
"""Labels of the axes that ``...`` stands for: Greek letters, which an equation may not have."""

_EXAMPLE: Final = 'Such as einsum("ij,jk->ik", x, y)'


def einsum(equation: str, /, *operands: Tensor) -> Tensor:
    """Products of tensors, summed over the labels that are not in the result.

    Parameters
    ----------
    equation : str
        A letter for each axis of each operand, operands separated by commas, then ``->`` and the
        letters of the result. A letter that occurs twice in an operand takes its diagonal, ``...``
        stands for any other axes, which broadcast. Without ``->`` the result has the letters that
        occur once, in alphabetical order, after the axes of ``...``.
    *operands : Tensor
        Tensors of numbers.

    Returns
    -------
    Tensor
        It has the axes of the result in the order of the equation.

    Raises
    ------
    ArgumentError
        If the equation is malformed, or not for as many operands.
    ShapeError
        If an operand has another number of axes than the equation, or a letter several lengths.

    Notes
    -----
    Two operands at a time are contracted by one batched matrix product. With more than two,
    opt_einsum (if it is installed) chooses the order; else it is from left to right.

    Examples
    --------
    >>> import burn
    >>> x = burn.asarray([[1.0, 2.0], [3.0, 4.0]], device="cpu")
    >>> burn.einsum("ij,jk->ik", x, x).tolist()
    [[7.0, 10.0], [15.0, 22.0]]
    >>> burn.einsum("ii", x).item()
    5.0
    """
    terms, result = _read(equation, operands)
    lengths = _lengths(equation, terms, operands)
    pending = [_with_diagonals(term, x) for term, x in zip(terms, operands, strict=True)]
    if len(pending) == 1:
        term, x = pending[0]
        return independent(_arranged(_summed(term, x, set(result)), result, lengths))
    for pair in _path(pending, result, lengths):
        first, second = (pending[index] for index in pair)
        pending = [item for index, item in enumerate(pending) if index not in pair]
        needed = set(result).union(*[set(term) for term, _ in pending])
        pending.append(_contract(first, second, needed))
    return independent(_arranged(pending[0], result, lengths))


_Term = tuple[str, "Tensor"]


def _read(equation: str, operands: tuple[Tensor, ...]) -> tuple[list[str], str]:
    """Labels of the operands and of the result, ``...`` written out."""
    if not isinstance(equation, str):
        raise OperandTypeError(
            f"the equation is an object of type {type(equation).__name__}, not a string",
            hint=_EXAMPLE,
            operation="einsum",
        )
    left, arrow, right = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(operands):
        raise _error(equation, f"names {len(terms)} operands, but there are {len(operands)}")
    ranks = [rank_of(x, "einsum") for x in operands]
    extra = [rank - len(term.replace("...", "")) for rank, term in zip(ranks, terms, strict=True)]
    hidden = max([number for number, term in zip(extra, terms, strict=True) if "..." in term] + [0])
    for term, rank, number in zip(terms, ranks, extra, strict=True):
        if number < 0 or (number and "..." not in term):
            raise ShapeError(
                f"{term!r} of {equation!r} is for another number of axes than {rank}",
                hint="Give each axis a letter, or ... for several",
                operation="einsum",
            )
    if hidden > len(_ELLIPSIS_LABELS):
        raise _error(equation, f"has {hidden} axes for ...")
    dots = "".join(_ELLIPSIS_LABELS[:hidden])
    if not arrow:
        joined = left.replace("...", "").replace(",", "")
        right = "..." + "".join(sorted(name for name in set(joined) if joined.count(name) == 1))
    _check_letters(equation, terms, right)
    labels = [
        term.replace("...", dots[hidden - number :])
        for term, number in zip(terms, extra, strict=True)
    ]
    return labels, right.replace("...", dots)


def _check_letters(equation: str, terms: list[str], result: str) -> None:
    for term in [*terms, result]:
        letters = term.replace("...", "", 1)
        if letters and not (letters.isascii() and letters.isalpha()):
            raise _error(equation, f"has something other than letters in {term!r}")
    letters = result.replace("...", "")
    if len({*letters}) != len(letters):
        raise _error(equation, "has a letter twice in its result")
    if {*letters} - {*"".join(terms)}:
        raise _error(equation, "has a letter in its result that no operand has")


def _error(equation: str, what: str) -> ArgumentError:
    return ArgumentError(f"{equation!r} {what}", hint=_EXAMPLE, operation="einsum")


def _lengths(equation: str, terms: list[str], operands: tuple[Tensor, ...]) -> dict[str, int]:
    """Length of each label; a length of 1 broadcasts."""
    lengths: dict[str, int] = {}
    for term, x in zip(terms, operands, strict=True):
        for label, length in zip(term, x.shape, strict=True):
            known = lengths.get(label, 1)
            if known != length and 1 not in (known, length):
                raise ShapeError(
                    f"{label!r} of {equation!r} has lengths {known} and {length}",
                    hint="A letter stands for one length",
                    operation="einsum",
                )
            lengths[label] = length if known == 1 else known
    return lengths


def _with_diagonals(term: str, x: Tensor) -> _Term:
    """An operand with each label once: the diagonals of labels that occur several times."""
    for label in sorted({name for name in term if term.count(name) > 1}):
        while term.count(label) > 1:
            first = term.index(label)
            second = term.index(label, first + 1)
            if x.shape[first] != x.shape[second]:
                length = max(x.shape[first], x.shape[second])
                shape = list(x.shape)
                shape[first] = shape[second] = length
                x = broadcast_to(x, tuple(shape))
            x = diagonal(moveaxis(moveaxis(x, second, -1), first, -2))
            term = term[:first] + term[first + 1 : second] + term[second + 1 :] + label
    return term, x


def _summed(term: str, x: Tensor, needed: set[str]) -> _Term:
    """An operand summed over the labels that are not needed."""
    summed = tuple(axis for axis, label in enumerate(term) if label not in needed)
    if not summed:
        return term, x
    kept = "".join(label for label in term if label in needed)
    return kept, sum(x, axis=summed, dtype=x.dtype)


def _path(pending: list[_Term], result: str, lengths: dict[str, int]) -> list[tuple[int, int]]:
    """Pairs to contract, as indices into the operands left; each product is appended to them."""
    if len(pending) > 2:
        try:
            import opt_einsum  # type: ignore[import-untyped]  # it has no stubs
        except ImportError:
            pass
        else:
            equation = ",".join(term for term, _ in pending) + "->" + result
            shapes = [tuple(lengths[label] for label in term) for term, _ in pending]
            path, _ = opt_einsum.contract_path(equation, *shapes, shapes=True)
            if all(len(step) == 2 for step in path):
                return [(step[0], step[1]) for step in path]
    # From left to right: from the second step on, the last product is the last of those left.
    count = len(pending)
    return [(0, 1) if left == count else (left - 1, 0) for left in range(count, 1, -1)]


def _contract(first: _Term, second: _Term, needed: set[str]) -> _Term:
    """Product of two operands, summed over labels that are not needed, as one matrix product."""
    term1, x1 = _summed(*first, needed | set(second[0]))
    term2, x2 = _summed(*second, needed | set(first[0]))
    shared = [label for label in term1 if label in term2]
    batch = [label for label in shared if label in needed]
    inner = [label for label in shared if label not in needed]
    rows = [label for label in term1 if label not in shared]
    columns = [label for label in term2 if label not in shared]
    size1, size2 = dict(zip(term1, x1.shape, strict=True)), dict(zip(term2, x2.shape, strict=True))
    for label in inner:
        size1[label] = size2[label] = broadcast_shapes((size1[label],), (size2[label],))[0]
    x1 = _expanded(x1, term1, size1)
    x2 = _expanded(x2, term2, size2)

    def along(labels: list[str], sizes: dict[str, int]) -> list[int]:
        return [sizes[label] for label in labels]

    left = permute_dims(x1, [term1.index(label) for label in (*batch, *rows, *inner)])
    right = permute_dims(x2, [term2.index(label) for label in (*batch, *inner, *columns)])
    depth = math.prod(along(inner, size1))
    left = reshape(left, (*along(batch, size1), math.prod(along(rows, size1)), depth))
    right = reshape(right, (*along(batch, size2), depth, math.prod(along(columns, size2))))
    product = matmul(left, right)
    shape = (*product.shape[: len(batch)], *along(rows, size1), *along(columns, size2))
    return "".join((*batch, *rows, *columns)), reshape(product, shape)


def _expanded(x: Tensor, term: str, sizes: dict[str, int]) -> Tensor:
    shape = tuple(sizes[label] for label in term)
    return x if shape == x.shape else broadcast_to(x, shape)


def _arranged(term: _Term, result: str, lengths: dict[str, int]) -> Tensor:
    """Axes in the order of the result, at full length."""
    labels, x = term
    x = permute_dims(x, [labels.index(label) for label in result])
    return _expanded(x, result, lengths)
