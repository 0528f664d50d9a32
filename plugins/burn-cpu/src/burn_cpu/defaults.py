"""Ops by their decompositions, for the cases in which nothing here is faster."""

from __future__ import annotations

import functools
from typing import Any

from burn.device_id import DeviceId
from burn.ops import OpTable


class DefaultOps:
    """What mixins with methods for some dtypes, or some shapes, do with the others."""

    @functools.cached_property
    def _table(self) -> OpTable:
        return OpTable(self, DeviceId(0))

    def decomposed(self, name: str, *operands: Any, **attributes: Any) -> Any:
        """An op made of other ops, which are this backend's own where it has them."""
        return self._table.decomposed(name, *operands, **attributes)
