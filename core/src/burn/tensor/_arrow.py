"""Tensors as columns of pyarrow and polars.

Arrow's protocols exchange C structures that C code must release, even while an exception
propagates; so pyarrow or polars makes them from a NumPy array, in the same memory.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from burn.errors import ExportError

if TYPE_CHECKING:
    from burn.tensor._conversion import HostConversion

__all__ = ["arrow_array", "arrow_stream"]


def arrow_array(x: HostConversion, type_: Any) -> Any:
    """A pyarrow array of the elements along the first axis, of lists where there are more axes."""
    pyarrow = importlib.import_module("pyarrow")
    values = _values(x, "__arrow_array__")
    result = pyarrow.array(values.reshape(-1))
    for axis in range(values.ndim - 1, 0, -1):
        result = pyarrow.FixedSizeListArray.from_arrays(result, values.shape[axis])
    return result if type_ is None else result.cast(type_)


def arrow_stream(x: HostConversion, requested_schema: Any) -> Any:
    """A capsule of Arrow's C stream interface with the column that `arrow_array` describes."""
    polars = sys.modules.get("polars")  # it asks for a stream, and may be there without pyarrow
    if polars is not None:
        column = polars.Series(_values(x, "__arrow_c_stream__"))
    else:
        try:
            pyarrow = importlib.import_module("pyarrow")
        except ImportError:
            raise ExportError(
                "an Arrow stream is made by pyarrow or polars, and neither is installed",
                hint="pip install pyarrow",
                operation="__arrow_c_stream__",
            ) from None
        column = pyarrow.chunked_array([arrow_array(x, None)])
    return column.__arrow_c_stream__(requested_schema)


def _values(x: HostConversion, operation: str) -> Any:
    """The values on the host, if Arrow can hold them."""
    if x.dtype.is_complex or x.dtype.name == "bfloat16":
        raise ExportError(
            f"Arrow has no {x.dtype}",
            hint="Convert with .astype()" + (", or burn.real()" if x.dtype.is_complex else ""),
            operation=operation,
        )
    if not x.ndim:
        raise ExportError(
            "a 0-d tensor is no column", hint="Make one with .reshape((1,))", operation=operation
        )
    if 0 in x.shape[1:]:  # polars (2.1) ends in a panic
        raise ExportError(
            f"a tensor of shape {x.shape} has no elements to make lists of", operation=operation
        )
    return x.__array__()
