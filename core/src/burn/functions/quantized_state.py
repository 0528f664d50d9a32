"""States with quantized tensors as ordinary tensors and text, for files, and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from burn.dtype import Kind
from burn.errors import ArgumentError, BurnError
from burn.functions.common import DeviceLike
from burn.functions.creation import asarray
from burn.functions.normalize import check_tensor
from burn.functions.quantization import of_tensors, part_tensors
from burn.quant_scheme import QuantScheme

if TYPE_CHECKING:
    from burn.tensor.tensor import Tensor

__all__ = ["join_state", "split_state"]

_PARTS: Final = ("codes", "scales", "global_scale")
"""What is added to the name of a quantized tensor, after a point, for the names of its parts."""


def split_state(state: Mapping[str, Tensor], /) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Codes and scales in place of quantized tensors, and their schemes as text.

    Parameters
    ----------
    state : mapping of str to Tensor
        Tensors by names, such as the `state_dict` of a model.

    Returns
    -------
    dict of str to Tensor
        Tensors that are not quantized as they are; of a quantized tensor ``name.codes``,
        ``name.scales`` and, in two levels, ``name.global_scale``: what a file format holds.
    dict of str to str
        The text of the scheme of each quantized tensor: metadata of the file.

    Raises
    ------
    ArgumentError
        If a name of a part is that of another tensor.

    Examples
    --------
    >>> import burn
    >>> from burn.quantization import join_state, split_state
    >>> state = {"weight": burn.ones((4, 4), device="cpu").quantize_dynamic()}
    >>> tensors, schemes = split_state(state)
    >>> sorted(tensors), schemes
    (['weight.codes', 'weight.scales'], {'weight': 'q8f(scale=float32, store=native)'})
    >>> join_state(tensors, schemes)["weight"].data() == state["weight"].data()
    True
    """
    tensors: dict[str, Tensor] = {}
    schemes: dict[str, str] = {}
    for name, x in state.items():
        check_tensor(x, name, "split_state")
        if x.dtype.kind is not Kind.QUANTIZED:
            parts = {name: x}
        else:
            schemes[name] = x.dtype.name
            own = zip(_PARTS, part_tensors(x), strict=False)  # one level has no global scale
            parts = {f"{name}.{part}": tensor for part, tensor in own}
        for part, tensor in parts.items():
            if part in tensors or (part != name and part in state):
                raise ArgumentError(
                    f"two tensors have the name {part!r}",
                    hint="Rename one: parts of a quantized tensor are called name.codes, "
                    "name.scales and name.global_scale",
                    operation="split_state",
                )
            tensors[part] = tensor
    return tensors, schemes


def join_state(
    tensors: Mapping[str, Any], schemes: Mapping[str, str], /, *, device: DeviceLike | None = None
) -> dict[str, Tensor]:
    """The state that `split_state` took apart.

    Parameters
    ----------
    tensors : mapping of str to Tensor or array
        Tensors and parts by names, on one device.
    schemes : mapping of str to str
        The text of the scheme of each quantized tensor.
    device : Device or str, optional
        Where the tensors are made. By default that of the parts.

    Returns
    -------
    dict of str to Tensor
        Tensors by names.

    Raises
    ------
    ArgumentError
        If a part is missing.
    DTypeError
        If a text is no scheme, or a part has another dtype than the scheme says.
    ShapeError
        If the shapes of the parts do not agree.
    """
    rest = dict(tensors)
    state: dict[str, Tensor] = {}
    for name, text in schemes.items():
        try:
            scheme = QuantScheme.parse(text)
        except BurnError as error:
            error.operation = "join_state"
            raise
        parts = []
        for part, _ in zip(_PARTS, scheme.part_dtypes, strict=False):
            found = rest.pop(f"{name}.{part}", None)
            if found is None:
                raise ArgumentError(
                    f"{name}.{part} is missing, a part of {text}", operation="join_state"
                )
            parts.append(asarray(found, device=device))
        state[name] = of_tensors(parts, scheme, "join_state")
    return {**{name: asarray(x, device=device) for name, x in rest.items()}, **state}
