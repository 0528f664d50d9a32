"""QDType: the dtype of quantized tensors of one scheme."""

from __future__ import annotations

from typing import Any, ClassVar

from burn.dtype import DType, Kind
from burn.errors import ArgumentError, DTypeError
from burn.public_calls import shown_value
from burn.quant_scheme.scheme import QuantScheme

__all__ = ["QDType"]


class QDType(DType):
    """The dtype of quantized tensors of one scheme. There is one object per scheme.

    It is of a kind of its own: no backend has it, it takes no part in promotion, and it is none of
    `DType.members`. Its name is the text of the scheme.

    Attributes
    ----------
    scheme : QuantScheme
        How the tensors are stored.

    Examples
    --------
    >>> dtype = QDType(QuantScheme())
    >>> dtype
    burn.q8f(scale=float32, store=packed_u32@-1)
    >>> dtype is QDType(QuantScheme())
    True
    """

    __slots__ = ("scheme",)

    scheme: QuantScheme

    _interned: ClassVar[dict[QuantScheme, QDType]] = {}

    def __new__(cls, scheme: QuantScheme) -> QDType:  # noqa: PYI034 — no class derives from it
        """The one dtype of a scheme."""
        if scheme.__class__ is not QuantScheme:
            raise ArgumentError(
                f"{shown_value(scheme)} is no QuantScheme",
                hint="QuantScheme.parse reads the text of one",
                operation="QDType",
            )
        found = cls._interned.get(scheme)
        if found is None:
            made = super().__new__(cls)
            made.scheme = scheme
            made.name = scheme.text
            made._hash = hash(scheme.text)
            made.kind = Kind.QUANTIZED
            made.itemsize = scheme.storage_dtype.itemsize
            made.is_float = True  # what it stands for: functions treat it as floats
            made.is_integer = made.is_bool = made.is_complex = False
            found = cls._interned.setdefault(scheme, made)
        return found

    def __init__(self, scheme: QuantScheme) -> None:
        pass

    def __reduce__(self) -> tuple[object, ...]:
        return QDType, (self.scheme,)

    def __getattr__(self, name: str) -> Any:
        if name == "numpy":
            raise DTypeError(
                f"NumPy has no dtype for {self.name}",
                hint="Call .dequantize() first, or .data() for codes and scales; quantized tensors "
                "are made of floats, with .quantize_dynamic()",
            )
        raise AttributeError(f"a QDType has no attribute {name!r}")

    @property
    def bits(self) -> int:
        """Bits of a code."""
        return self.scheme.value.bits


DType.of_scheme = staticmethod(lambda text: QDType(QuantScheme.parse(text)))
