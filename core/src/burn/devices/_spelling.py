"""How devices are spelled: ``backend[/type][:index]``, and ``autodiff<...>`` around it."""

from __future__ import annotations

from dataclasses import dataclass

from burn.devices._transforms import AUTODIFF, GRAD, VMAP
from burn.errors import ArgumentError
from burn.plugins import BackendSpec
from burn.public_calls import shown_value

__all__ = ["Spelling", "canonical_name", "parse", "spelled"]

_AUTODIFF = "autodiff<"
_CHECKPOINTING = ", checkpointing"


@dataclass(frozen=True)
class Spelling:
    """The parts of a device name.

    Attributes
    ----------
    hardware : str
        The name without autodiff.
    backend : str
    type : str
        Device type; "" for the first one of the backend that is present.
    index : int
    is_autodiff, is_checkpointing : bool
    """

    hardware: str
    backend: str
    type: str
    index: int
    is_autodiff: bool = False
    is_checkpointing: bool = False

    @property
    def inside(self) -> str:
        """What follows the backend and a slash: all that a parser of the backend reads."""
        return self.hardware.removeprefix(self.backend).removeprefix("/")


def parse(name: object) -> Spelling:
    """The parts of a device name.

    Raises
    ------
    ArgumentError
        If it is none.

    Examples
    --------
    >>> spelling = parse("autodiff<torch/cuda:1>")
    >>> spelling.hardware, spelling.backend, spelling.type, spelling.index, spelling.is_autodiff
    ('torch/cuda:1', 'torch', 'cuda', 1, True)
    """
    if not isinstance(name, str):
        raise ArgumentError(f"a device is named by a string, not by {shown_value(name)}")
    is_autodiff = name.startswith(_AUTODIFF) and name.endswith(">")
    inside = name.removeprefix(_AUTODIFF).removesuffix(">") if is_autodiff else name
    if inside.startswith(_AUTODIFF):
        raise ArgumentError(f"{name!r} has autodiff twice", hint="Device.autodiff() is first order")
    if name.startswith(tuple(f"{kind}<" for kind in (GRAD, VMAP, "trace"))) or "<trace<" in name:
        raise ArgumentError(
            f"{name!r} has a layer of burn.{name.partition('<')[0]}",
            hint="Only a running transform makes such a device, for the tensors of its function",
        )
    hardware = inside.removesuffix(_CHECKPOINTING) if is_autodiff else inside
    rest, colon, number = hardware.partition(":")
    backend, slash, type_ = rest.partition("/")
    if not backend or (slash and not type_) or (colon and not number.isdecimal()):
        raise ArgumentError(
            f"{hardware!r} is no device name", hint="Write backend[/type][:index], such as cuda:1"
        )
    index = int(number) if number else 0
    return Spelling(hardware, backend, type_, index, is_autodiff, hardware != inside)


def canonical_name(spec: BackendSpec, type: str, index: int) -> str:
    """``cuda:0``, or ``torch/cpu:0`` where the backend has several device types, or a parser."""
    if len(spec.device_types) == 1 and spec.parse is None:
        return f"{spec.name}:{index}"
    return f"{spec.name}/{type}:{index}"


def spelled(hardware: str, layers: tuple[str, ...], strategy: str | None) -> str:
    """The spelling of a device: ``autodiff<cpu:0, checkpointing>``, ``vmap<autodiff<cpu:0>>``."""
    text = hardware
    for layer in layers:
        inside = f"{text}{_CHECKPOINTING}" if layer == AUTODIFF and strategy else text
        text = f"{layer}<{inside}>"
    return text
