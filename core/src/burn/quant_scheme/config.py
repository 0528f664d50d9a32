"""QuantConfig: how a device quantizes, and what arithmetic on quantized tensors gives."""

from __future__ import annotations

import enum
from dataclasses import dataclass, field

from burn.errors import ArgumentError
from burn.public_calls import shown_as_text
from burn.quant_scheme.fields import QuantStore
from burn.quant_scheme.scheme import QuantScheme

__all__ = ["Propagation", "QuantConfig"]


@shown_as_text
class Propagation(enum.Enum):
    """What arithmetic on quantized tensors gives."""

    INHIBIT = "inhibit"
    """Floats."""

    PROPAGATE = "propagate"
    """Tensors quantized with the scheme of the first quantized operand.

    Floats remain what autodiff tracks, since quantizing has no gradient, and results of a shape
    that the blocks of the scheme do not divide.
    """


@shown_as_text
@dataclass(frozen=True)
class QuantConfig:
    """How a device quantizes.

    Attributes
    ----------
    scheme : QuantScheme
        The scheme where the user names none: 8 bits, a scale for the tensor, an element for each
        code, which every shape allows.
    propagation : Propagation
        What arithmetic on quantized tensors gives.
    """

    scheme: QuantScheme = field(default_factory=lambda: QuantScheme(store=QuantStore.NATIVE))
    propagation: Propagation = Propagation.INHIBIT

    def __post_init__(self) -> None:
        for name, kind in {"scheme": QuantScheme, "propagation": Propagation}.items():
            if not isinstance(getattr(self, name), kind):
                raise ArgumentError(
                    f"{name} must be a {kind.__name__}, not {getattr(self, name)!r}",
                    operation="QuantConfig",
                )
