"""Attention: matrix products, and between them a kernel for the rows of the scores."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final, Unpack

from burn.plugin_api import (
    AttentionAttributes,
    OpTable,
    attention_shapes,
    bool_,
    c_type_of,
    check_broadcasts_to_scores,
    check_same_shape,
    in_float32,
    signed_scalar_bits,
    transpose_matrices,
)
from burn_opencl.base import OpenClOps
from burn_opencl.buffers import Buffer
from burn_opencl.dtypes import check_dtypes
from burn_opencl.limits import GPU_GROUP_ITEMS, MAX_KERNEL_AXES, SMALL_GROUP_ITEMS
from burn_opencl.programs import text_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from burn_opencl.launcher import Launcher

__all__ = ["AttentionOps"]

_ROWS_PER_CPU_GROUP: Final = 4

_MAX_SCORES_FOR_SMALL_GROUPS: Final = 128
"""Up to so many scores in a row, small groups of a GPU compute it."""

_SCALAR_PARAMETERS: Final = 8
_MASK_AND_BIAS_PARAMETERS: Final = _SCALAR_PARAMETERS + 3 * MAX_KERNEL_AXES
"""Parameters of the kernels that describe the mask and the bias."""


class AttentionOps(OpenClOps):
    """Attention and its gradients, which keep the scores of all queries in memory."""

    def attention(
        self,
        query: Buffer,
        key: Buffer,
        value: Buffer,
        mask: Buffer | None,
        bias: Buffer | None,
        **attributes: Unpack[AttentionAttributes],
    ) -> Buffer:
        """Two matrix products and a kernel."""
        result: Buffer = _attention(self.ops, query, key, value, mask, bias, **attributes)
        return result

    def attention_grad(
        self,
        query: Buffer,
        key: Buffer,
        value: Buffer,
        mask: Buffer | None,
        bias: Buffer | None,
        g: Buffer,
        **attributes: Unpack[AttentionAttributes],
    ) -> tuple[Buffer, Buffer, Buffer]:
        """Five matrix products and two kernels."""
        query_grad, key_grad, value_grad = _gradients(
            self.ops, query, key, value, mask, bias, g, **attributes
        )
        return query_grad, key_grad, value_grad

    def attention_bias_grad(
        self,
        query: Buffer,
        key: Buffer,
        value: Buffer,
        mask: Buffer | None,
        bias: Buffer | None,
        g: Buffer,
        **attributes: Unpack[AttentionAttributes],
    ) -> Buffer:
        """Two matrix products and two kernels."""
        result: Buffer = _bias_gradient(self.ops, query, key, value, mask, bias, g, **attributes)
        return result


@in_float32
def _attention(ops: OpTable, *operands: Any, **attributes: Any) -> Any:
    if not _fits_kernel(operands):
        return ops.decomposed("attention", *operands, **attributes)
    scores = _Scores(ops, operands, attributes)
    return ops.matmul(scores.weights, operands[2])


@in_float32
def _gradients(ops: OpTable, *operands: Any, **attributes: Any) -> Any:
    if not _fits_kernel(operands):
        return ops.decomposed("attention_grad", *operands, **attributes)
    query, key, _, _, _, g = operands
    scores = _Scores(ops, operands, attributes)
    score_grad = scores.gradient(g, attributes["scale"], attributes["softcap"])
    return (
        ops.matmul(score_grad, key),
        ops.matmul(transpose_matrices(ops, score_grad), query),
        ops.matmul(transpose_matrices(ops, scores.weights), g),
    )


@in_float32
def _bias_gradient(ops: OpTable, *operands: Any, **attributes: Any) -> Any:
    if not _fits_kernel(operands):
        return ops.decomposed("attention_bias_grad", *operands, **attributes)
    # The bias is added after the scale and the cap.
    return _Scores(ops, operands, attributes).gradient(operands[5], 1.0, None)


def _fits_kernel(operands: Sequence[Any]) -> bool:
    """Whether the parameters of a kernel have room for all axes."""
    return max(len(operand.shape) for operand in operands[:3]) <= MAX_KERNEL_AXES


class _Scores:
    """Scores of queries and keys, and the weights that are their softmax."""

    def __init__(self, ops: OpTable, operands: Sequence[Any], attributes: dict[str, Any]) -> None:
        query, key, value, mask, bias = operands[:5]
        check_dtypes("attention", query, key, value, bias, *operands[5:], floats=True)
        if mask is not None and mask.dtype is not bool_:
            raise TypeError(f"attention with a mask of {mask.dtype}")
        shapes = attention_shapes(query.shape, key.shape, value.shape, attributes["softcap"])
        check_broadcasts_to_scores(shapes.scores, mask=mask, bias=bias)
        self.ops, self.value, self.shapes = ops, value, shapes
        self.scale, self.softcap = attributes["scale"], attributes["softcap"]
        self.launcher: Launcher = query.owner.launcher
        scores = ops.matmul(query, transpose_matrices(ops, key))
        self.scores = self.launcher.dense(scores.expanded(shapes.scores))
        self.weights = self.launcher.empty(shapes.scores, query.dtype)
        queries, keys = shapes.scores[-2:]
        may_exclude_rows = (
            mask is not None or bias is not None or (attributes["is_causal"] and queries > keys)
        )
        parameters = [int(mask is not None), int(bias is not None), int(attributes["is_causal"])]
        parameters.append(int(may_exclude_rows))
        views = [
            None if tensor is None else tensor.expanded(shapes.scores) for tensor in (mask, bias)
        ]
        parameters += [0 if view is None else view.offset for view in views]
        parameters += [0 if view is None else view.strides[-1] for view in views]
        padding = [0] * (MAX_KERNEL_AXES - len(shapes.scores) + 1)
        parameters += [*shapes.scores[:-1], *padding]
        for view in views:
            parameters += [0] * MAX_KERNEL_AXES if view is None else [*view.strides[:-1], *padding]
        operands_beside = [self.scores if view is None else view for view in views]
        self._launch(
            "attention_weights", self.scale, self.softcap, parameters, operands_beside, self.weights
        )

    def gradient(self, g: Buffer, scale: float, softcap: float | None) -> Buffer:
        """Gradient by the products of queries and keys, times a scale."""
        ops, shapes, launcher = self.ops, self.shapes, self.launcher
        check_same_shape("g", g.shape, shapes.output)
        products = ops.matmul(g, transpose_matrices(ops, self.value))
        weight_grad = launcher.dense(products.expanded(shapes.scores))
        out = launcher.empty(shapes.scores, g.dtype)
        unused, operands = [0] * _MASK_AND_BIAS_PARAMETERS, [weight_grad, self.scores]
        self._launch("attention_score_grad", scale, softcap, unused, operands, out)
        return out

    def _launch(
        self,
        name: str,
        scale: float,
        softcap: float | None,
        parameters: Sequence[int],
        operands: Sequence[Buffer],
        out: Buffer,
    ) -> None:
        if not out.size:
            return
        launcher, shape, dtype = self.launcher, out.shape, out.dtype
        on_cpu = launcher.runtime.is_cpu
        rows, n = math.prod(shape[:-1]), shape[-1]
        group, lanes = _ROWS_PER_CPU_GROUP, 1
        if not on_cpu:
            is_short = n <= _MAX_SCORES_FOR_SMALL_GROUPS
            group = lanes = SMALL_GROUP_ITEMS if is_short else GPU_GROUP_ITEMS
        head = [rows, n, shape[-2], len(shape) - 1]
        head += [signed_scalar_bits(scale, dtype), signed_scalar_bits(softcap or 1.0, dtype)]
        first = self.scores if name == "attention_weights" else self.weights
        definitions = {"GROUP_SIZE": group, "LANES": lanes}
        body = text_of("row_helpers.cl")
        kernel = launcher.kernel(name, "attention.cl", c_type_of(dtype), definitions, body)
        launcher.run(
            kernel,
            rows * lanes,
            (*head, int(softcap is not None), *parameters),
            [item.memory for item in (first, *operands, out)],
            group,
        )
