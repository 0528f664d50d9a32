"""How tensors stand in a safetensors file: what the format lacks, as arrays that it has."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from burn.dtype import (
    DType,
    bfloat16,
    bool_,
    complex64,
    complex128,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint16,
    uint32,
    uint64,
)
from burn.errors import BurnError
from burn.quant_scheme import QDType, QuantScheme
from burn.store._errors import failure
from burn.tensor_data import QuantizedData, TensorData

if TYPE_CHECKING:
    import numpy.typing as npt

__all__ = ["DTYPES", "KEY", "Encoding", "encoded", "part_names", "unique_keys"]

KEY: Final = "burn.store"
"""The key of the metadata of a file that says which tensors are not as the format has them."""

DTYPES: Final[dict[str, DType]] = {
    "BOOL": bool_,
    "I8": int8,
    "I16": int16,
    "I32": int32,
    "I64": int64,
    "U8": uint8,
    "U16": uint16,
    "U32": uint32,
    "U64": uint64,
    "F16": float16,
    "BF16": bfloat16,
    "F32": float32,
    "F64": float64,
    "C64": complex64,
}
"""Our dtypes by the names of the format."""

_PARTS: Final = ("codes", "scales", "global_scale")
"""What is added to the name of a quantized tensor, after a point, for the names of its parts."""


@dataclass(frozen=True)
class Encoding:
    """Which tensors of a file are not as the format has them.

    Attributes
    ----------
    schemes : dict of str to str
        The text of the scheme of each quantized tensor, which is stored in parts.
    complex128 : list of str
        Names of tensors of complex128, which are stored as float64 with one more axis of length 2.
    """

    schemes: dict[str, str] = field(default_factory=dict)
    complex128: list[str] = field(default_factory=list)

    @classmethod
    def of(cls, dtypes: Iterable[tuple[str, DType]]) -> Encoding:
        """That of tensors with names and dtypes."""
        pairs = list(dtypes)
        return cls(
            {name: dtype.name for name, dtype in pairs if isinstance(dtype, QDType)},
            [name for name, dtype in pairs if dtype is complex128],
        )

    @property
    def metadata(self) -> dict[str, str]:
        """As metadata of a file: nothing if all tensors are as the format has them."""
        return {KEY: json.dumps(asdict(self))} if self.schemes or self.complex128 else {}

    @classmethod
    def read(cls, metadata: Mapping[str, str], path: Path) -> Encoding:
        """That of a file with such metadata.

        Raises
        ------
        StoreError
            If the metadata are damaged.
        """
        if KEY not in metadata:
            return cls()
        try:
            found: Any = json.loads(metadata[KEY])
            schemes, names = found["schemes"], found["complex128"]
            is_right = all(isinstance(scheme, str) for scheme in [*schemes.values(), *names])
        except (AttributeError, KeyError, RecursionError, TypeError, ValueError):
            is_right = False
        if not is_right:
            raise failure(
                "",
                path,
                f"the metadata {KEY!r} are damaged",
                "Save it again; or remove this entry, and all tensors are as they are stored",
            )
        return cls(dict(schemes), list(names))

    def scheme(self, name: str, path: Path) -> QuantScheme:
        """The scheme of a quantized tensor.

        Raises
        ------
        StoreError
            If its text is no scheme.
        """
        try:
            return QuantScheme.parse(self.schemes[name])
        except BurnError as error:
            raise failure("", path, f"{name} has no scheme that is known: {error}") from error


def part_names(name: str, dtype: DType) -> list[str]:
    """The names in a file of a tensor: its own, or of a quantized one those of its parts."""
    if not isinstance(dtype, QDType):
        return [name]
    return [f"{name}.{part}" for part, _ in zip(_PARTS, dtype.scheme.part_dtypes, strict=False)]


def encoded(values: Mapping[str, TensorData]) -> dict[str, npt.NDArray[Any]]:
    """Values as arrays that the format has, in row-major order: copies only where they have to be.

    Parameters
    ----------
    values : mapping of str to TensorData
        Values on the host by names, quantized or not.

    Returns
    -------
    dict of str to numpy.ndarray
        Arrays by the names of `part_names`.
    """
    arrays = {}
    for name, data in values.items():
        parts = data.parts if isinstance(data, QuantizedData) else [data]
        for part, tensor_data in zip(part_names(name, data.dtype), parts, strict=True):
            array = np.asarray(tensor_data.array, order="C")
            if tensor_data.dtype is complex128:
                array = array.reshape((*array.shape, 1)).view(np.float64)
            arrays[part] = array
    return arrays


def unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON, for the argument `object_pairs_hook` of `json.loads`.

    Raises
    ------
    ValueError
        If a key is there twice: readers would differ in which one counts.
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("an object has a key twice")
    return found
