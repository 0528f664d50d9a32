"""Creation, and layout: other strides over the same memory wherever that will do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from burn.dtype import DType
from burn.ops import REGISTRY, Meta, OpTable
from burn_opencl.bits import signed_bits, word_bits
from burn_opencl.buffers import Buffer
from burn_opencl.expressions import CODES, class_of

if TYPE_CHECKING:
    from burn.aliases import RealScalar, Scalar, Shape, Slices
    from burn.device_id import DeviceId
    from burn_opencl.launcher import Launcher

__all__ = ["LayoutOps"]


class LayoutOps:
    """Creation and layout."""

    launcher: Launcher
    table: OpTable
    device: Any

    def full(self, *, shape: Shape, fill_value: Scalar, dtype: DType, device: DeviceId) -> Buffer:
        """The queue fills memory with a pattern."""
        del device
        out = self.launcher.empty(shape, dtype)
        size = out.size * dtype.itemsize
        if size:
            pattern = word_bits(fill_value, dtype).to_bytes(dtype.itemsize, "little")
            self.launcher.runtime.fill(out.memory.handle, pattern, size)
        return out

    def arange(
        self, *, start: RealScalar, step: RealScalar, length: int, dtype: DType, device: DeviceId
    ) -> Buffer:
        """Computed in float64 where the device has it, and then rounded."""
        del device
        launcher = self.launcher
        out = launcher.empty((length,), dtype)
        wide = DType.of("float64") if dtype.is_float and launcher.runtime.has_fp64 else dtype
        computed = class_of(wide)
        kernel = launcher.kernel("arange", "arange.cl", computed)
        numbers = (
            length,
            signed_bits(start, wide),
            signed_bits(step, wide),
            CODES[dtype.name],
        )
        launcher.run(kernel, length, numbers, (out.memory,))
        return out

    def reshape(self, x: Buffer, *, shape: Shape) -> Buffer:
        """A view where the strides allow one, else a copy."""
        view = x.reshaped(shape)
        if view is None:
            view = self.launcher.copied(x).reshaped(shape)
        return view  # type: ignore[return-value]  # a dense tensor has every view

    def permute(self, x: Buffer, *, axes: tuple[int, ...]) -> Buffer:
        """A view."""
        if sorted(axes) != list(range(len(x.shape))):
            raise IndexError(f"axes {axes} of {len(x.shape)}")
        return x.permuted(axes)

    def expand(self, x: Buffer, *, shape: Shape) -> Buffer:
        """A view."""
        return x.expanded(shape)

    def slice(self, x: Buffer, *, slices: Slices) -> Buffer:
        """A view."""
        return x.sliced(slices)

    def flip(self, x: Buffer, *, axes: tuple[int, ...]) -> Buffer:
        """A view."""
        if len(set(axes)) != len(axes) or not all(0 <= one < len(x.shape) for one in axes):
            raise IndexError(f"axes {axes} of {len(x.shape)}")
        slices = [
            (length - 1, length, -1) if number in axes else (0, length, 1)
            for number, length in enumerate(x.shape)
        ]
        return x.sliced(tuple(slices))

    def slice_assign(self, x: Buffer, value: Buffer | Scalar, *, slices: Slices) -> Buffer:
        """A copy, and what is written over it."""
        launcher = self.launcher
        if isinstance(value, Buffer) and value.dtype is not x.dtype:
            raise TypeError(f"{value.dtype} into {x.dtype}")
        x.sliced(slices)  # refuses what reaches beyond
        result = launcher.copied(x)
        target = result.sliced(slices)
        if isinstance(value, Buffer):
            value.expanded(target.shape)
        launcher.move("copy", [value], target)
        return result

    def pad(
        self,
        x: Buffer,
        *,
        padding: tuple[tuple[int, int], ...],
        mode: str = "constant",
        value: Scalar = 0,
    ) -> Buffer:
        """Memory filled with a number, and what is written over it; else the default."""
        given: dict[str, Any] = {"padding": padding, "mode": mode, "value": value}
        meta: Any = REGISTRY["pad"].infer(Meta(x.shape, x.dtype), **given)
        if mode != "constant":
            return self.table.decomposed("pad", x, **given)  # type: ignore[no-any-return]  # a Buffer
        out = self.full(shape=meta.shape, fill_value=value, dtype=x.dtype, device=self.device)
        slices = [(before, length, 1) for length, (before, _) in zip(x.shape, padding, strict=True)]
        if x.size:
            self.launcher.write(out.sliced(tuple(slices)), x)
        return out

    def concat(self, tensors: Sequence[Buffer], *, axis: int) -> Buffer:
        """Each is written to its place."""
        launcher = self.launcher
        first = tensors[0]
        kept = (*first.shape[:axis], *first.shape[axis + 1 :])
        for one in tensors:
            other = (*one.shape[:axis], *one.shape[axis + 1 :])
            if one.dtype is not first.dtype or other != kept or not 0 <= axis < len(one.shape):
                raise ValueError(f"{one.dtype} {one.shape} joined to {first.dtype} {first.shape}")
        shape = (*kept[:axis], sum([one.shape[axis] for one in tensors]), *kept[axis:])
        result = launcher.empty(shape, first.dtype)
        start = 0
        for one in tensors:
            places = result.viewed(
                one.shape, result.strides, result.offset + start * result.strides[axis]
            )
            launcher.write(places, one)
            start += one.shape[axis]
        return result
