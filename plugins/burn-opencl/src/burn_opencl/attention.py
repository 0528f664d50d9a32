"""Attention: products of matrices, and between them a kernel for the rows of the scores."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from burn.dtype import bool_
from burn.ops import OpTable
from burn.ops.attention import check_attention, check_on_scores
from burn.ops.indexing import check_same
from burn.ops.linear_algebra import transpose
from burn.ops.precision import in_float32
from burn_opencl.bits import signed_bits
from burn_opencl.buffers import Buffer, check_dtypes
from burn_opencl.expressions import class_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from burn_opencl.launcher import Launcher

__all__ = ["AttentionOps"]

_RANK: Final = 8
_ROWS_OF_A_GROUP: Final = 4
_SHORT: Final = 128
"""A row of so many scores at the most is for a small group."""


class AttentionOps:
    """Attention and its gradients; the scores of all queries are there at once."""

    launcher: Launcher
    table: OpTable

    def attention(
        self,
        query: Buffer,
        key: Buffer,
        value: Buffer,
        mask: Buffer | None,
        bias: Buffer | None,
        *,
        scale: float,
        softcap: float | None = None,
        is_causal: bool = False,
    ) -> Buffer:
        """Two products and a kernel."""
        given = {"scale": scale, "softcap": softcap, "is_causal": is_causal}
        return _attention(self.table, query, key, value, mask, bias, **given)  # type: ignore[no-any-return]  # a Buffer

    def attention_grad(
        self,
        query: Buffer,
        key: Buffer,
        value: Buffer,
        mask: Buffer | None,
        bias: Buffer | None,
        g: Buffer,
        *,
        scale: float,
        softcap: float | None = None,
        is_causal: bool = False,
    ) -> tuple[Buffer, Buffer, Buffer]:
        """Five products and two kernels."""
        given = {"scale": scale, "softcap": softcap, "is_causal": is_causal}
        return _gradients(self.table, query, key, value, mask, bias, g, **given)  # type: ignore[no-any-return]  # Buffers

    def attention_bias_grad(
        self,
        query: Buffer,
        key: Buffer,
        value: Buffer,
        mask: Buffer | None,
        bias: Buffer | None,
        g: Buffer,
        *,
        scale: float,
        softcap: float | None = None,
        is_causal: bool = False,
    ) -> Buffer:
        """Two products and two kernels."""
        given = {"scale": scale, "softcap": softcap, "is_causal": is_causal}
        return _bias_gradient(self.table, query, key, value, mask, bias, g, **given)  # type: ignore[no-any-return]  # a Buffer


@in_float32
def _attention(ops: OpTable, *operands: Any, **given: Any) -> Any:
    if not _has_room(operands):
        return ops.decomposed("attention", *operands, **given)
    rows = _Rows(ops, operands, given)
    return ops.matmul(rows.weights, operands[2])


@in_float32
def _gradients(ops: OpTable, *operands: Any, **given: Any) -> Any:
    if not _has_room(operands):
        return ops.decomposed("attention_grad", *operands, **given)
    query, key, _, _, _, g = operands
    rows = _Rows(ops, operands, given)
    slope = rows.slope(g, given["scale"], given["softcap"])
    return (
        ops.matmul(slope, key),
        ops.matmul(transpose(ops, slope), query),
        ops.matmul(transpose(ops, rows.weights), g),
    )


@in_float32
def _bias_gradient(ops: OpTable, *operands: Any, **given: Any) -> Any:
    if not _has_room(operands):
        return ops.decomposed("attention_bias_grad", *operands, **given)
    # The bias comes after the scale and the cap.
    return _Rows(ops, operands, given).slope(operands[5], 1.0, None)


def _has_room(operands: Sequence[Any]) -> bool:
    """Whether a kernel can be told of all axes."""
    return max(len(one.shape) for one in operands[:3]) <= _RANK


class _Rows:
    """The scores of queries and keys, and what the softmax makes of them."""

    def __init__(self, ops: OpTable, operands: Sequence[Any], given: dict[str, Any]) -> None:
        query, key, value, mask, bias = operands[:5]
        check_dtypes("attention", query, key, value, bias, *operands[5:], floats=True)
        if mask is not None and mask.dtype is not bool_:
            raise TypeError(f"attention with a mask of {mask.dtype}")
        plan = check_attention(query.shape, key.shape, value.shape, given["softcap"])
        check_on_scores(plan.scores, mask=mask, bias=bias)
        self.ops, self.value, self.plan = ops, value, plan
        self.scale, self.softcap = given["scale"], given["softcap"]
        self.launcher: Launcher = query.owner.launcher
        scores = ops.matmul(query, transpose(ops, key))
        self.scores = self.launcher.dense(scores.expanded(plan.scores))
        self.weights = self.launcher.empty(plan.scores, query.dtype)
        queries, keys = plan.scores[-2:]
        excludes = mask is not None or bias is not None or (given["is_causal"] and queries > keys)
        numbers = [int(mask is not None), int(bias is not None), int(given["is_causal"])]
        numbers.append(int(excludes))
        views = [None if one is None else one.expanded(plan.scores) for one in (mask, bias)]
        numbers += [0 if one is None else one.offset for one in views]
        numbers += [0 if one is None else one.strides[-1] for one in views]
        rest = [0] * (_RANK - len(plan.scores) + 1)
        numbers += [*plan.scores[:-1], *rest]
        for one in views:
            numbers += [0] * _RANK if one is None else [*one.strides[:-1], *rest]
        beside = [self.scores if one is None else one for one in views]
        self._launch("attention_weights", self.scale, self.softcap, numbers, beside, self.weights)

    def slope(self, g: Buffer, scale: float, softcap: float | None) -> Buffer:
        """Gradient by the products of queries and keys, times a scale."""
        ops, plan, launcher = self.ops, self.plan, self.launcher
        check_same("g", g.shape, plan.output)
        products = ops.matmul(g, transpose(ops, self.value))
        steep = launcher.dense(products.expanded(plan.scores))
        out = launcher.empty(plan.scores, g.dtype)
        self._launch(
            "attention_slope", scale, softcap, [0] * (8 + 3 * _RANK), [steep, self.scores], out
        )
        return out

    def _launch(
        self,
        name: str,
        scale: float,
        softcap: float | None,
        numbers: Sequence[int],
        beside: Sequence[Buffer],
        out: Buffer,
    ) -> None:
        if not out.size:
            return
        launcher, shape, dtype = self.launcher, out.shape, out.dtype
        on_cpu = launcher.runtime.is_cpu
        rows, n = math.prod(shape[:-1]), shape[-1]
        group = _ROWS_OF_A_GROUP if on_cpu else 64 if n <= _SHORT else 256
        head = [rows, n, shape[-2], len(shape) - 1]
        head += [signed_bits(scale, dtype), signed_bits(softcap or 1.0, dtype)]
        first = self.scores if name == "attention_weights" else self.weights
        kernel = launcher.kernel(name, "attention.cl", class_of(dtype), {"GROUP_SIZE": group})
        launcher.run(
            kernel,
            rows if on_cpu else rows * group,
            (*head, int(softcap is not None), *numbers),
            [one.memory for one in (first, *beside, out)],
            group,
        )
