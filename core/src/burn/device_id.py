"""DeviceId, and the encoding of a backend and its device type in one number.

A backend numbers its device types from 0 (torch: cuda 0, mps 1, cpu 2). At the dispatch level a
type id contains the backend as well: ``backend_id << 8 | backend_type_id``.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from burn.errors import ArgumentError

__all__ = ["BACKEND_IDS", "FIRST_FOREIGN_ID", "DeviceId", "decode_type_id", "encode_type_id"]

BACKEND_IDS: Final = {
    "cpu": 0,
    "cuda": 1,
    "wgpu": 2,
    "rocm": 3,
    "flex": 4,
    "torch": 5,
    "ndarray": 6,
    "metal": 7,
    "vulkan": 8,
    "webgpu": 9,
    "remote": 10,
    "capture": 11,
    "opencl": 12,
    "router": 13,
    "reference": 14,
}
"""Backend ids fixed by the project. 15 to 127 are reserved."""

FIRST_FOREIGN_ID: Final = 128
"""Third-party backends are numbered from here at discovery, in the order of their names."""

_MAX_UINT8: Final = 0xFF
_MAX_UINT16: Final = 0xFFFF


class DeviceId(NamedTuple):
    """A device: its type, and its index among the devices of that type.

    The ids of third-party backends differ between processes, so a DeviceId is never stored; names
    are.
    """

    type_id: int
    index_id: int = 0


def encode_type_id(backend_id: int, backend_type_id: int) -> int:
    """Dispatch-level type id of a backend's device type.

    Raises
    ------
    ArgumentError
        If either number does not fit 8 bits.

    Examples
    --------
    >>> hex(encode_type_id(5, 2))
    '0x502'
    """
    for name, number in (("backend id", backend_id), ("device type id", backend_type_id)):
        if not 0 <= number <= _MAX_UINT8:
            raise ArgumentError(f"{name} {number} does not fit 8 bits (0 to 255)")
    return backend_id << 8 | backend_type_id


def decode_type_id(type_id: int) -> tuple[int, int]:
    """Backend id and the backend's own type id of a dispatch-level type id.

    Raises
    ------
    ArgumentError
        If the number does not fit 16 bits.

    Examples
    --------
    >>> decode_type_id(0x502)
    (5, 2)
    """
    if not 0 <= type_id <= _MAX_UINT16:
        raise ArgumentError(f"type id {type_id} does not fit 16 bits (0 to 65535)")
    return type_id >> 8, type_id & _MAX_UINT8
