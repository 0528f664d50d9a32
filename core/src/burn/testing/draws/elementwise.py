"""Draws of elementwise ops: operands that broadcast, of any rank and layout, and numbers."""

from __future__ import annotations

import numpy as np

from burn.dtype import Kind
from burn.testing.draws._draw import Draw, Sort, draws, is_array, typical_sample
from burn.testing.op_samples import Sample, sample

__all__ = ["draw"]


def draw(draw: Draw) -> Sample | None:
    """A sample of operands that broadcast, with the attributes of another sample."""
    typical = typical_sample(draw)
    if typical is None:
        return None
    shape = draw.shape()
    arrays = [number for number, operand in enumerate(typical.operands) if is_array(operand)]
    whole = draw.among(*arrays)
    operands = [
        draw.like(operand, shape if number == whole else draw.broadcastable(shape))
        if is_array(operand)
        else operand
        for number, operand in enumerate(typical.operands)
    ]
    numbers = [
        number
        for number, spec in enumerate(draw.op.operands.values())
        if spec.scalar and number != whole and is_array(operands[number])
    ]
    if numbers and draw.kind is Kind.FLOAT and draw.chance(0.15):
        number = draw.among(*numbers)
        operands[number] = float(operands[number].reshape(-1)[0]) if operands[number].size else 1.5
    attributes = draw.among(*[sample.attributes for sample in draw.samples.samples])
    return sample("", *operands, differentiable=typical.differentiable, **attributes)


@draws("complex")
def _(draw: Draw) -> Sample | None:
    """Both operands are floats, of a dtype with a complex one."""
    shape = draw.shape()
    return sample("", draw.floats(*shape), draw.floats(*draw.broadcastable(shape)))


@draws("sgd_step", "adam_step", "adagrad_step", "rmsprop_step", "adan_step", "lion_step")
def _(draw: Draw) -> Sample | None:
    """The numbers of another sample again and again: they belong together."""
    chosen = [
        sample
        for sample in draw.samples.samples
        if all(is_array(part) for operand in sample.operands for part in operand)
        and all(part.size >= 2 for operand in sample.operands for part in operand)
    ]
    if not chosen or draw.sort is Sort.HUGE:
        return None
    typical = draw.among(*chosen)
    shapes = [draw.shape() for _ in range(len(typical.operands[0]))]
    operands = [
        [
            draw.view(np.resize(part, shape), repeats=False)
            for part, shape in zip(operand, shapes, strict=False)
        ]
        for operand in typical.operands
    ]
    return sample(
        "",
        *operands,
        differentiable=typical.differentiable,
        **typical.attributes,
    )
