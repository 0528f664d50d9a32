"""Gather, scatter, selection and sorting.

On the CPU torch's kernels check each index and raise. Only then are indices examined here: negative
ones are replaced, and burn's error names one that is out of range. On an accelerator an index out
of range would end all work of the process, so it is replaced and reported later: see
`burn_torch.index_checks`.
"""

from __future__ import annotations

from typing import Final

import torch

from burn.plugin_api import DType, check_gather_operands
from burn_torch.base import TorchOps
from burn_torch.dtypes import HALF_FLOATS, SIGNED_OF_UNSIGNED, TORCH_DTYPES, Tensor
from burn_torch.index_checks import as_int64, checked
from burn_torch.precision import in_float32
from burn_torch.settings import in_any_order

_embedding_backward: Final = torch.ops.aten.embedding_dense_backward.default
_REDUCTIONS: Final = {"multiply": "prod", "min": "amin", "max": "amax"}


class IndexingOps(TorchOps):
    """Indexing and sorting."""

    def gather(self, x: Tensor, indices: Tensor, *, axis: int) -> Tensor:
        """`torch.gather`."""
        check_gather_operands(x, indices, axis)
        return self.indexed(lambda indices: torch.gather(x, axis, indices), indices, x.shape[axis])

    @in_any_order
    def scatter_add(self, x: Tensor, indices: Tensor, value: Tensor, *, axis: int) -> Tensor:
        """`torch.scatter_add`; on accelerators in a fixed order."""
        check_gather_operands(x, indices, axis, value)
        dtype = x.dtype
        if dtype in HALF_FLOATS:
            x, value = x.to(torch.float32), value.to(torch.float32)
        if self.on_host or not dtype.is_floating_point:

            def add(indices: Tensor) -> Tensor:
                return torch.scatter_add(x, axis, indices, value)
        else:

            def add(indices: Tensor) -> Tensor:
                return _added(x, indices, value, axis)

        result = self.indexed(add, indices, x.shape[axis])
        return result.to(dtype) if dtype in HALF_FLOATS else result

    def select(self, x: Tensor, indices: Tensor, *, axis: int) -> Tensor:
        """`torch.index_select`."""
        _check_vector(x, indices, axis)
        if self.on_host and indices.dtype is torch.int64:
            try:
                return torch.index_select(x, axis, indices)
            except (IndexError, RuntimeError):
                pass  # a negative index, or one that is too large
        return self.indexed(
            lambda indices: torch.index_select(x, axis, indices), indices, x.shape[axis]
        )

    @in_any_order
    def select_add(self, x: Tensor, indices: Tensor, value: Tensor, *, axis: int) -> Tensor:
        """`torch.index_add`; on accelerators in a fixed order."""
        _check_vector(x, indices, axis)
        expected = (*x.shape[:axis], indices.shape[0], *x.shape[axis + 1 :])
        if value.shape != expected:
            raise ValueError(f"a value of shape {value.shape} where {expected} is needed")
        if not value.numel():  # torch checks no index then
            return self.decomposed("select_add", x, indices, value, axis=axis)
        dtype = x.dtype
        if dtype in HALF_FLOATS:
            x, value = x.to(torch.float32), value.to(torch.float32)

        def add(indices: Tensor) -> Tensor:
            if self.on_host or not dtype.is_floating_point:
                return torch.index_add(x, axis, indices, value)
            result = x.clone(memory_format=torch.contiguous_format)
            result.movedim(axis, 0).index_put_((indices,), value.movedim(axis, 0), accumulate=True)
            return result

        result = self.indexed(add, indices, x.shape[axis])
        return result.to(dtype) if dtype in HALF_FLOATS else result

    def embedding(self, weight: Tensor, indices: Tensor) -> Tensor:
        """`torch.embedding`."""
        if weight.dim() != 2:
            raise ValueError(f"a weight of shape {weight.shape}")
        return self.indexed(
            lambda indices: torch.embedding(weight, indices), indices, weight.shape[0], least=0
        )

    @in_float32
    @in_any_order
    def embedding_grad(self, g: Tensor, indices: Tensor, *, count: int) -> Tensor:
        """Torch's backward kernel, which passes over an index out of range."""
        if count < 0 or g.shape[:-1] != indices.shape:
            raise ValueError(f"g of shape {g.shape} for indices of shape {indices.shape}")
        if indices.dtype is not torch.int64:
            indices = as_int64(indices)
        if self.on_host:
            indices = checked(indices, count, least=0)
        else:
            indices = self.index_checks.recorded(indices, count, least=0)
        if not g.numel():  # the kernel of CUDA would read what is not there
            return g.new_zeros((count, g.shape[-1]))
        by_count = False  # gradients are not divided by the number of their indices
        return _embedding_backward(g, indices, count, -1, by_count)  # type: ignore[no-any-return]  # a tensor

    def nll_loss(self, log_probs: Tensor, targets: Tensor, *, axis: int) -> Tensor:
        """`torch.gather`."""
        _check_targets(log_probs, targets, axis)
        chosen = self.indexed(
            lambda labels: torch.gather(log_probs, axis, labels.unsqueeze(axis)),
            targets,
            log_probs.shape[axis],
            least=0,
        )
        return chosen.squeeze(axis).neg_()

    @in_float32
    @in_any_order
    def cross_entropy_grad(
        self, logits: Tensor, targets: Tensor, g: Tensor, *, axis: int
    ) -> Tensor:
        """``(softmax - one_hot(targets)) * g`` by `torch.scatter_add`."""
        _check_targets(logits, targets, axis)
        if g.shape != targets.shape:
            raise ValueError(f"g of shape {g.shape} for {targets.shape}")
        g = g.unsqueeze(axis)
        weighted, opposite = torch.softmax(logits, axis).mul_(g), -g
        return self.indexed(
            lambda labels: weighted.scatter_add_(axis, labels.unsqueeze(axis), opposite),
            targets,
            logits.shape[axis],
            least=0,
        )

    @in_any_order
    def scatter(
        self, x: Tensor, indices: Tensor, value: Tensor, *, axis: int, update: str
    ) -> Tensor:
        """`torch.scatter` and `torch.scatter_reduce`; the default where their order may vary."""
        order_matters = update == "assign" or (update == "multiply" and x.dtype.is_floating_point)
        if (
            (update not in _REDUCTIONS and update != "assign")
            or (order_matters and not self.on_host)
            or x.dtype.is_complex
            or (update == "multiply" and x.dtype is torch.bool)
            or (x.dtype in SIGNED_OF_UNSIGNED and update != "assign")
        ):
            return self.decomposed("scatter", x, indices, value, axis=axis, update=update)
        check_gather_operands(x, indices, axis, value)
        dtype = x.dtype
        if dtype in HALF_FLOATS:
            x, value = x.to(torch.float32), value.to(torch.float32)
        elif dtype is torch.bool:
            x, value = x.view(torch.uint8), value.view(torch.uint8)
        elif dtype in SIGNED_OF_UNSIGNED:
            x, value = x.view(SIGNED_OF_UNSIGNED[dtype]), value.view(SIGNED_OF_UNSIGNED[dtype])

        def write(indices: Tensor) -> Tensor:
            if update == "assign":
                return torch.scatter(x, axis, indices, value)
            return torch.scatter_reduce(x, axis, indices, value, _REDUCTIONS[update])

        result = self.indexed(write, indices, x.shape[axis])
        if dtype in HALF_FLOATS:
            return result.to(dtype)
        return result if result.dtype is dtype else result.view(dtype)

    def sort(self, x: Tensor, *, axis: int, descending: bool = False) -> Tensor:
        """`torch.sort`."""
        values = _sorted(x, axis, descending=descending)[0]
        return values.view(torch.bool) if x.dtype is torch.bool else values

    def argsort(self, x: Tensor, *, axis: int, descending: bool = False, dtype: DType) -> Tensor:
        """`torch.sort`."""
        indices = _sorted(x, axis, descending=descending)[1]
        native = TORCH_DTYPES[dtype]
        return indices if native is torch.int64 else indices.to(native)

    def searchsorted(self, x1: Tensor, x2: Tensor, *, right: bool = False, dtype: DType) -> Tensor:
        """`torch.searchsorted`; floats as integers of the same order, as it does not order NaN."""
        if x1.dim() != 1:
            raise ValueError(f"a search in a tensor of shape {x1.shape}")
        x1, x2 = _in_order(x1), _in_order(x2)
        indices = torch.searchsorted(
            x1.contiguous(), x2.reshape(-1).contiguous(), right=right
        ).reshape(x2.shape)
        native = TORCH_DTYPES[dtype]
        return indices if native is torch.int64 else indices.to(native)

    def argwhere(self, x: Tensor, *, dtype: DType) -> Tensor:
        """`torch.nonzero`, which waits for the device."""
        return torch.nonzero(x).to(TORCH_DTYPES[dtype])


def _added(x: Tensor, indices: Tensor, value: Tensor, axis: int) -> Tensor:
    """`torch.scatter_add` in a fixed order: `index_put_` sorts, where atomic additions vary."""
    result = x.clone(memory_format=torch.contiguous_format)
    key = [
        torch.arange(length, device=x.device, dtype=torch.int64).reshape(
            [length if number == other else 1 for other in range(x.dim())]
        )
        for number, length in enumerate(indices.shape)
    ]
    key[axis] = indices
    result.index_put_(tuple(key), value, accumulate=True)
    return result


def _check_vector(x: Tensor, indices: Tensor, axis: int) -> None:
    if indices.dim() != 1 or not 0 <= axis < x.dim():
        raise ValueError(f"indices of shape {indices.shape} along axis {axis} of {x.shape}")


def _check_targets(x: Tensor, targets: Tensor, axis: int) -> None:
    if not 0 <= axis < x.dim() or targets.shape != (*x.shape[:axis], *x.shape[axis + 1 :]):
        raise ValueError(f"targets of shape {targets.shape} along axis {axis} of {x.shape}")


def _sorted(x: Tensor, axis: int, *, descending: bool) -> tuple[Tensor, Tensor]:
    if not 0 <= axis < x.dim():
        raise IndexError(f"axis {axis} of {x.dim()}")
    if x.dtype is torch.bool:
        x = x.view(torch.uint8)
    elif x.is_cuda and x.dtype.is_floating_point:
        # CUDA sorts a NaN with a sign bit before all numbers.
        x = torch.where(torch.isnan(x), torch.nan, x)
    values, indices = torch.sort(x, stable=True, dim=axis, descending=descending)
    return values, indices


def _in_order(x: Tensor) -> Tensor:
    """Integers of the same order as the elements: NaN is largest, and both zeros are equal."""
    if not x.dtype.is_floating_point:
        return x.view(torch.uint8) if x.dtype is torch.bool else x
    if x.dtype in HALF_FLOATS:
        x = x.to(torch.float32)
    bits, low = (
        (torch.int64, (1 << 63) - 1) if x.dtype is torch.float64 else (torch.int32, (1 << 31) - 1)
    )
    x = torch.where(torch.isnan(x), torch.nan, x + 0.0)
    signed = x.view(bits)
    return torch.where(signed < 0, signed ^ low, signed)
