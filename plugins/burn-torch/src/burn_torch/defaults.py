"""Ops by their decompositions, for the cases in which torch has nothing better."""

from __future__ import annotations

import functools
from typing import Any

import torch

from burn.device_id import DeviceId
from burn.ops import OpTable
from burn_torch.settings import Precision


class DefaultOps:
    """What mixins with methods for some dtypes, or some shapes, do with the others."""

    place: torch.device
    """Where the tensors of this object live."""

    on_host: bool
    """Whether that is the memory of the host."""

    products: Precision
    convolutions: Precision
    """How torch is set to round products of float32."""

    device_id: DeviceId
    """burn's name for it."""

    @functools.cached_property
    def _table(self) -> OpTable:
        return OpTable(self, self.device_id)

    def decomposed(self, name: str, *operands: Any, **attributes: Any) -> Any:
        """An op made of other ops, which are this backend's own where it has them."""
        return self._table.decomposed(name, *operands, **attributes)
