"""Reading and writing at places, and the order of elements.

On the CPU torch's own kernels look at each index and raise. Where one does, the indices are looked
at here: they may be negative, or out of range, and burn's error says which. An accelerator would
lose its context by an index out of range: there none is passed on, and what is wrong with them is
noted in the memory of the device until somebody reads (`burn_torch.flags`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import torch

from burn.backend.array import check_places, index_error
from burn.dtype import DType
from burn_torch.defaults import DefaultOps
from burn_torch.dtypes import SHORT, SIGNED, TORCH, Tensor
from burn_torch.flags import Flags
from burn_torch.precision import in_float32

_REDUCTIONS: Final = {"multiply": "prod", "min": "amin", "max": "amax"}


class IndexingOps(DefaultOps):
    """Places, and sorting."""

    flags: Flags
    """Indices that were out of range, and nobody knows yet."""

    def gather(self, x: Tensor, indices: Tensor, *, axis: int) -> Tensor:
        """`torch.gather`."""
        check_places(x, indices, axis)
        return self._at(lambda places: torch.gather(x, axis, places), indices, x.shape[axis])

    def scatter_add(self, x: Tensor, indices: Tensor, value: Tensor, *, axis: int) -> Tensor:
        """`torch.scatter_add`; on accelerators in an order that is always the same."""
        check_places(x, indices, axis, value)
        dtype = x.dtype
        if dtype in SHORT:
            x, value = x.to(torch.float32), value.to(torch.float32)
        if self.on_host or not dtype.is_floating_point:

            def add(places: Tensor) -> Tensor:
                return torch.scatter_add(x, axis, places, value)
        else:

            def add(places: Tensor) -> Tensor:
                return _added(x, places, value, axis)

        result = self._at(add, indices, x.shape[axis])
        return result.to(dtype) if dtype in SHORT else result

    def select(self, x: Tensor, indices: Tensor, *, axis: int) -> Tensor:
        """`torch.index_select`."""
        _check_vector(x, indices, axis)
        if self.on_host and indices.dtype is torch.int64:
            try:
                return torch.index_select(x, axis, indices)
            except (IndexError, RuntimeError):
                pass  # a negative index, or one that is too large
        return self._at(lambda places: torch.index_select(x, axis, places), indices, x.shape[axis])

    def select_add(self, x: Tensor, indices: Tensor, value: Tensor, *, axis: int) -> Tensor:
        """`torch.index_add`; on accelerators in an order that is always the same."""
        _check_vector(x, indices, axis)
        expected = (*x.shape[:axis], indices.shape[0], *x.shape[axis + 1 :])
        if value.shape != expected:
            raise ValueError(f"a value of shape {value.shape} where {expected} is needed")
        dtype = x.dtype
        if dtype in SHORT:
            x, value = x.to(torch.float32), value.to(torch.float32)

        def add(places: Tensor) -> Tensor:
            if self.on_host or not dtype.is_floating_point:
                return torch.index_add(x, axis, places, value)
            result = x.clone(memory_format=torch.contiguous_format)
            result.movedim(axis, 0).index_put_((places,), value.movedim(axis, 0), accumulate=True)
            return result

        result = self._at(add, indices, x.shape[axis])
        return result.to(dtype) if dtype in SHORT else result

    def embedding(self, weight: Tensor, indices: Tensor) -> Tensor:
        """`torch.embedding`."""
        if weight.dim() != 2:
            raise ValueError(f"a weight of shape {weight.shape}")
        return self._at(
            lambda places: torch.embedding(weight, places), indices, weight.shape[0], least=0
        )

    def nll_loss(self, log_probs: Tensor, targets: Tensor, *, axis: int) -> Tensor:
        """`torch.gather`."""
        _check_targets(log_probs, targets, axis)
        chosen = self._at(
            lambda labels: torch.gather(log_probs, axis, labels.unsqueeze(axis)),
            targets,
            log_probs.shape[axis],
            least=0,
        )
        return -chosen.squeeze(axis)

    @in_float32
    def cross_entropy_grad(
        self, logits: Tensor, targets: Tensor, g: Tensor, *, axis: int
    ) -> Tensor:
        """`torch.scatter_add`, in which each class is named once."""
        _check_targets(logits, targets, axis)
        if g.shape != targets.shape:
            raise ValueError(f"g of shape {g.shape} for {targets.shape}")
        g = g.unsqueeze(axis)
        weighted = torch.softmax(logits, axis) * g
        return self._at(
            lambda labels: torch.scatter_add(weighted, axis, labels.unsqueeze(axis), -g),
            targets,
            logits.shape[axis],
            least=0,
        )

    def scatter(
        self, x: Tensor, indices: Tensor, value: Tensor, *, axis: int, update: str
    ) -> Tensor:
        """`torch.scatter` and `torch.scatter_reduce`, where their order is that of the indices."""
        order_matters = update == "assign" or (update == "multiply" and x.dtype.is_floating_point)
        if (
            (update not in _REDUCTIONS and update != "assign")
            or (order_matters and not self.on_host)
            or x.dtype.is_complex
            or (update == "multiply" and x.dtype is torch.bool)
            or (x.dtype in SIGNED and update != "assign")
        ):
            return self.decomposed("scatter", x, indices, value, axis=axis, update=update)  # type: ignore[no-any-return]  # a primitive
        check_places(x, indices, axis, value)
        dtype = x.dtype
        if dtype in SHORT:
            x, value = x.to(torch.float32), value.to(torch.float32)
        elif dtype is torch.bool:
            x, value = x.view(torch.uint8), value.view(torch.uint8)
        elif dtype in SIGNED:
            x, value = x.view(SIGNED[dtype]), value.view(SIGNED[dtype])

        def write(places: Tensor) -> Tensor:
            if update == "assign":
                return torch.scatter(x, axis, places, value)
            return torch.scatter_reduce(x, axis, places, value, _REDUCTIONS[update])

        result = self._at(write, indices, x.shape[axis])
        if dtype in SHORT:
            return result.to(dtype)
        return result if result.dtype is dtype else result.view(dtype)

    def _at(
        self,
        function: Callable[[Tensor], Tensor],
        indices: Tensor,
        length: int,
        *,
        least: int | None = None,
    ) -> Tensor:
        """What a function of indices in [0, length) gives for those in [-length, length).

        With `least` 0 negative indices are out of range.
        """
        if indices.dtype is not torch.int64:
            indices = _as_int64(indices)
        if not self.on_host:
            return function(self.flags.noted(indices, length, least=least))
        try:
            return function(indices)
        except (IndexError, RuntimeError):
            return function(_checked(indices, length, least=least))

    def sort(self, x: Tensor, *, axis: int, descending: bool = False) -> Tensor:
        """`torch.sort`."""
        values = _sorted(x, axis, descending=descending)[0]
        return values.view(torch.bool) if x.dtype is torch.bool else values

    def argsort(self, x: Tensor, *, axis: int, descending: bool = False, dtype: DType) -> Tensor:
        """`torch.sort`."""
        places = _sorted(x, axis, descending=descending)[1]
        native = TORCH[dtype]
        return places if native is torch.int64 else places.to(native)

    def searchsorted(self, x1: Tensor, x2: Tensor, *, right: bool = False, dtype: DType) -> Tensor:
        """`torch.searchsorted`, of integers in the order of floats: it has no place for NaN."""
        if x1.dim() != 1:
            raise ValueError(f"a shape of {x1.shape}")
        x1, x2 = _in_order(x1), _in_order(x2)
        places = torch.searchsorted(
            x1.contiguous(), x2.reshape(-1).contiguous(), right=right
        ).reshape(x2.shape)
        native = TORCH[dtype]
        return places if native is torch.int64 else places.to(native)

    def argwhere(self, x: Tensor, *, dtype: DType) -> Tensor:
        """`torch.nonzero`, which waits for the number of elements."""
        return torch.nonzero(x).to(TORCH[dtype])


def _as_int64(indices: Tensor) -> Tensor:
    if indices.dtype is torch.uint64:  # what is beyond int64 is beyond every axis
        signed = indices.view(torch.int64)
        return torch.where(signed < 0, (1 << 63) - 1, signed)
    return indices.to(torch.int64)


def _checked(indices: Tensor, length: int, *, least: int | None) -> Tensor:
    """Indices in [0, length).

    Raises
    ------
    OutOfRangeError
        If one is not in [-length, length), or in [least, length).
    """
    if not indices.numel():
        return indices
    low, high = (int(bound) for bound in torch.aminmax(indices))
    if low < (-length if least is None else least) or high >= length:
        raise index_error(high if high >= length else low, length)
    return indices if low >= 0 else torch.where(indices < 0, indices + length, indices)


def _added(x: Tensor, places: Tensor, value: Tensor, axis: int) -> Tensor:
    """Sums by sorting the indices first: the order in which atomic additions come is anybody's."""
    result = x.clone(memory_format=torch.contiguous_format)
    where = [
        torch.arange(length, device=x.device, dtype=torch.int64).reshape(
            [length if number == other else 1 for other in range(x.dim())]
        )
        for number, length in enumerate(places.shape)
    ]
    where[axis] = places
    result.index_put_(tuple(where), value, accumulate=True)
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
        # There a NaN with a sign would come first, as if it were a number below all others.
        x = torch.where(torch.isnan(x), torch.nan, x)
    values, places = torch.sort(x, stable=True, dim=axis, descending=descending)
    return values, places


def _in_order(x: Tensor) -> Tensor:
    """Integers in the order of the elements: NaN is the largest, and both zeros are one."""
    if not x.dtype.is_floating_point:
        return x.view(torch.uint8) if x.dtype is torch.bool else x
    if x.dtype in SHORT:
        x = x.to(torch.float32)
    bits, low = (
        (torch.int64, (1 << 63) - 1) if x.dtype is torch.float64 else (torch.int32, (1 << 31) - 1)
    )
    x = torch.where(torch.isnan(x), torch.nan, x + 0.0)
    signed = x.view(bits)
    return torch.where(signed < 0, signed ^ low, signed)
