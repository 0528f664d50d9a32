"""KernelLauncher: what a plugin brings for the shared kernels; SharedOps: their methods' base."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from importlib import resources
from typing import Any, Final, Protocol

from burn.aliases import Primitive, Shape
from burn.backend import Backend
from burn.dtype import DType
from burn.ops import REGISTRY, Meta

__all__ = ["MAX_KERNEL_AXES", "KernelLauncher", "SharedOps", "check_axes", "shared_source"]

MAX_KERNEL_AXES: Final = 8
"""Axes for which the parameters of a kernel have room."""

_NOTHING: Final[Mapping[str, str | int]] = {}


@functools.cache
def shared_source(file: str) -> str:
    """Text of a file of ``sources``."""
    return resources.files("burn.shared_kernels").joinpath("sources", file).read_text("utf-8")


class KernelLauncher(Protocol):
    """Memory and launches of one device."""

    @property
    def is_cpu(self) -> bool:
        """Whether it is a processor, of which a work item computes many elements."""

    @property
    def units(self) -> int:
        """Number of groups that it computes at the same time, about."""

    @property
    def max_group(self) -> int:
        """Number of items of a group, at most."""

    def fixes_sizes(self, size: int) -> bool:
        """Whether sizes of windows are constants in kernels for so many results.

        No where compiling takes long compared with what that saves.
        """

    def new(self, shape: Shape, dtype: DType) -> Primitive:
        """A dense tensor whose elements are not written yet."""

    def dense(self, x: Primitive) -> Primitive:
        """The same elements in row-major order without gaps."""

    def copied(self, x: Primitive) -> Primitive:
        """A dense copy."""

    def is_aligned(self, x: Primitive) -> bool:
        """Whether the memory of four elements, from the first on, is aligned for one access."""

    def parts(self, x: Primitive) -> Primitive:
        """A real view of complex numbers, dense or not: their two parts along a new last axis."""

    def of_parts(self, parts: Primitive, dtype: DType) -> Primitive:
        """The complex numbers of a real tensor with their parts along the last axis."""

    def dtype_of(self, x: Primitive) -> DType:
        """Dtype of the elements."""

    def offset_of(self, x: Primitive) -> int:
        """Index of the first element from where the address points that a kernel gets."""

    def shared_kernel(
        self,
        entry: str,
        file: str,
        c_type: str,
        definitions: Mapping[str, str | int] = _NOTHING,
        types: Mapping[str, str | int] = _NOTHING,
        size: int = 0,
    ) -> Any:
        """A kernel of a shared source, compiled once.

        Parameters
        ----------
        entry, file : str
            Its name, and that of the source.
        c_type : str
            The type that it computes in, `c_type_of` a dtype.
        definitions : dict
            Macros.
        types : dict
            Macros of what the kernel also finds in its parameters: with them it is faster, without
            them fewer kernels are compiled.
        size : int
            Number of elements that it computes, by which the launcher chooses.
        """

    def start(
        self,
        kernel: Any,
        parameters: Sequence[int],
        arrays: Sequence[Any],
        items: int,
        group: int = 0,
    ) -> None:
        """Launch a kernel of a shared source.

        Parameters
        ----------
        kernel : object
            What `shared_kernel` returned.
        parameters : sequence of int
            The members of its struct, as integers of 64 bits.
        arrays : sequence
            Primitives, what `index_error` returned, or None for an absent one.
        items : int
            Work items, at least; 0 to compute nothing.
        group : int
            Items of a group where the source names a number; 0 where it says GROUP_ITEMS.
        """

    def index_error(self, op: str) -> tuple[Any, int]:
        """Memory to which a kernel writes an index that is out of range, and the op's number."""

    def table(self, make: Any, *arguments: Any) -> Sequence[Primitive]:
        """The arrays that a function computes on the host, as tensors, which are kept."""


class SharedOps(Backend):
    """Ops by shared kernels. Each mixin adds methods for one family of ops.

    What a method leaves to the default of its op it computes with ``self.ops.decomposed``.
    """

    launcher: Any  # a KernelLauncher, and what else the plugin uses itself

    def checked_shape(self, name: str, *operands: Primitive | None, **attributes: Any) -> Shape:
        """Shape of the first output of an op; raises what the op raises for its operands."""
        dtype_of = self.launcher.dtype_of
        metas = [None if x is None else Meta(x.shape, dtype_of(x)) for x in operands]
        outputs = REGISTRY[name].infer(*metas, **attributes)
        first = outputs if isinstance(outputs, Meta) else outputs[0]
        return first.shape

    def check_dtypes(self, op: str, *operands: Primitive | None, floats: bool = False) -> DType:
        """The one dtype of operands; None stands for an optional operand that is absent.

        Raises
        ------
        TypeError
            If there are several dtypes, or if `floats` is True and it is no float.
        """
        dtype: DType | None = None
        for x in operands:
            if x is not None:
                own: DType = self.launcher.dtype_of(x)
                if own is not dtype and (dtype is not None or (floats and not own.is_float)):
                    names = sorted({own.name, (dtype or own).name})
                    raise TypeError(f"{op} of {' and '.join(names)}")
                dtype = own
        if dtype is None:
            raise ValueError(f"{op} of nothing")
        return dtype


def check_axes(x: Primitive, *axes: int) -> None:
    """Refuse axes that a tensor does not have, or that repeat.

    Raises
    ------
    IndexError
        If there is such an axis.
    """
    rank = len(x.shape)
    if len(set(axes)) != len(axes) or not all(0 <= axis < rank for axis in axes):
        raise IndexError(f"axes {axes} of a tensor with {rank}")
