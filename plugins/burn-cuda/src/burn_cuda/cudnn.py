"""Convolutions of NVIDIA's cuDNN, where its Python package is installed: the extra ``cudnn``.

The package is the front end (https://docs.nvidia.com/deeplearning/cudnn/frontend/latest). Each
convolution is a graph, which is planned once. cuDNN is optional: the kernels of this plugin compute
the convolutions that it does not support, or is no faster at.
"""

from __future__ import annotations

import atexit
import functools
import importlib
import logging
import math
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from burn.plugin_api import ConvGeometry, Shape, bfloat16, float16, float32

__all__ = ["Cudnn", "installed"]

Array = Any

_log = logging.getLogger("burn")

_TYPES: Final = {float32.numpy: "FLOAT", float16.numpy: "HALF", bfloat16.numpy: "BFLOAT16"}
"""cuDNN's names of the dtypes; matrix products are faster for float64."""

_INEXACT_NOTES: Final = ("NONDETERMINISTIC", "REDUCED_PRECISION_REDUCTION", "DOWN_CONVERT_INPUTS")
_NONLOCAL_NOTES: Final = (
    *("FFT", "WINOGRAD", "WINOGRAD_TILE_4x4", "WINOGRAD_TILE_6x6", "WINOGRAD_TILE_13x13"),
)
"""Numerical notes of engines that are excluded: results are reproducible and accumulated in
float32. The only transform in use is that of `burn_cuda.winograd`, since larger ones round more and
spread NaN further."""

_MIN_MULTIPLICATIONS_FOR_GEMM: Final = 1 << 25
"""With fewer multiplications the time is that of launches, of which cuDNN has one."""

_FEW_TERMS: Final = 32
_MANY_WINDOWS: Final = 1 << 16
"""cuDNN 9.19 takes 283 µs for the gradient by 32 kernels of 1x3x3 (9 terms) from 100,352 windows,
and a matrix product 27; from 50,176 windows both take 26 µs (H200)."""

_STRIDE_1_AXES: Final = {"dgrad": (2, 3), "wgrad": (2,)}
"""Numbers of spatial axes for which cuDNN is faster in float32 with stride and dilation 1."""

_MAX_WORKSPACE_BYTES: Final = 1 << 30
_WORKSPACE_MEMORY_SHARE: Final = 64
"""A workspace takes at most this part of the memory of the GPU, and these bytes."""

_MAX_PLANS: Final = 1024
_OPERAND_IDS: Final = (1, 2)
_RESULT_ID: Final = 3
"""Identifiers of the tensors of a graph."""


@functools.cache
def installed() -> Any | None:
    """The package ``cudnn``; None where it is not installed, or ``BURN_CUDA_CUDNN=0``."""
    if os.environ.get("BURN_CUDA_CUDNN") == "0":
        return None
    try:
        library = importlib.import_module("cudnn")
    except Exception as error:  # noqa: BLE001 — any failure: cuDNN is optional
        _log.debug("cuDNN is not used: %s: %s", type(error).__name__, error)
        return None
    # After the package has registered what it does at the end of the process, so this runs before.
    atexit.register(_close_all, os.getpid())
    return library


_open: Final[weakref.WeakSet[Cudnn]] = weakref.WeakSet()


def _close_all(process: int) -> None:
    """Free the objects of the package while the interpreter is whole.

    It lists those that are left later, with all of its classes and functions, on stderr.
    """
    if os.getpid() != process:  # the driver does not work in a forked process
        return
    for cudnn in list(_open):
        cudnn.close()
    installed.cache_clear()


class Cudnn:
    """The convolutions of one device.

    Parameters
    ----------
    library : module
        The package ``cudnn``; None once this is closed.
    empty : callable
        From a shape and a dtype to a new array, for workspaces.
    memory : int
        Bytes of memory of the device.

    Attributes
    ----------
    is_unrestricted : bool
        Whether it takes all convolutions that it supports, even where it is slower.
    """

    def __init__(self, library: Any, empty: Callable[[Shape, Any], Array], memory: int) -> None:
        self.library = library
        self.empty = empty
        self.is_unrestricted = False
        self._room = min(_MAX_WORKSPACE_BYTES, memory // _WORKSPACE_MEMORY_SHARE)
        self._handle: Any = None
        self._lock = threading.Lock()
        self._plans: dict[Any, tuple[Any, int] | None] = {}
        _open.add(self)

    def close(self) -> None:
        """Free the graphs, then the handle, and forget the package: `run` takes nothing after."""
        with self._lock:
            library, self.library = self.library, None
            self._plans.clear()
            handle, self._handle = self._handle, None
            if library is not None and handle is not None:
                library.destroy_handle(handle)

    def suits(self, kind: str, plan: ConvGeometry, dtype: Any) -> bool:
        """Whether to compute a convolution, of a kind as for `run`, by cuDNN.

        On an H200, cuDNN 9.19 is faster in 16 bits throughout; in float32 it is faster forwards,
        for depthwise convolutions and for small ones. The engines that are left for gradients with
        other strides or dilations than 1 are slower than matrix products.
        """
        work = plan.batch * plan.outputs * math.prod(plan.counts) * plan.terms
        if dtype not in _TYPES or len(plan.axes) > 3 or not work:
            return False
        if self.is_unrestricted or dtype != np.float32:
            return True
        has_points = all(axis.kernel == axis.stride == 1 for axis in plan.axes)
        windows = plan.batch * math.prod(plan.counts)
        sums_many = kind == "wgrad" and plan.terms < _FEW_TERMS and windows >= _MANY_WINDOWS
        if plan.groups == 1 and (has_points or sums_many):
            return False  # one matrix product
        if kind == "fprop" or plan.groups == plan.inputs or work < _MIN_MULTIPLICATIONS_FOR_GEMM:
            return True
        has_stride_1 = plan.groups == 1 and all(
            axis.stride == axis.dilation == 1 for axis in plan.axes
        )
        return has_stride_1 and len(plan.axes) in _STRIDE_1_AXES[kind]

    def run(
        self,
        kind: str,
        operands: Sequence[Array],
        out: Array,
        plan: ConvGeometry,
        stream: int,
        *,
        tf32: bool,
    ) -> bool:
        """Write a convolution to `out`; return whether cuDNN took it.

        Parameters
        ----------
        kind : str
            ``"fprop"`` of images and weights, ``"dgrad"`` of output gradients and weights, or
            ``"wgrad"`` of images and output gradients.
        operands : sequence of array
            The two operands, dense.
        out : array
            The result, dense; may be float32 for 16-bit operands.
        plan : ConvGeometry
            The convolution whose result, or gradient, is computed.
        stream : int
            Address of the stream.
        tf32 : bool
            Whether float32 may be multiplied in TF32.
        """
        key = (kind, operands[0].dtype, out.dtype, tf32, plan)
        with self._lock:
            if self.library is None:
                return False
            if self._handle is None:
                self._handle = self.library.create_handle()
            self.library.set_stream(handle=self._handle, stream=stream)
            if key not in self._plans:
                if len(self._plans) >= _MAX_PLANS:
                    self._plans.clear()
                self._plans[key] = self._planned(*key)
            found = self._plans[key]
            if found is None:
                return False
            graph, size = found
            space = self.empty((max(size, 1),), np.dtype(np.uint8))
            tensors = dict(
                zip(_OPERAND_IDS, [operand.address for operand in operands], strict=True)
            )
            tensors[_RESULT_ID] = out.address
            try:
                graph.execute(tensors, space.address, handle=self._handle)
            except Exception as error:  # noqa: BLE001 — any failure: the kernels here compute it
                _log.debug("cuDNN fails at %s of %s: %s", kind, plan, error)
                self._plans[key] = None
                return False
        return True

    def _planned(
        self, kind: str, dtype: Any, result: Any, tf32: bool, plan: ConvGeometry
    ) -> tuple[Any, int] | None:
        """A graph and the bytes of its workspace; None where cuDNN has no engine for it."""
        try:
            graph = self._graph(kind, dtype, result, plan)
            modes = self.library.heur_mode
            graph.create_execution_plans([modes.A, modes.FALLBACK])
            notes = [*_INEXACT_NOTES, *_NONLOCAL_NOTES]
            if dtype == np.float32 and not tf32:
                notes.append("TENSOR_CORE")
            known = self.library.numerical_note
            graph.deselect_numeric_notes(
                [getattr(known, name) for name in notes if hasattr(known, name)]
            )
            graph.deselect_workspace_greater_than(self._room)
            graph.check_support()
            graph.build_plans(self.library.build_plan_policy.HEURISTICS_CHOICE)
            return graph, int(graph.get_workspace_size())
        except Exception as error:  # noqa: BLE001 — any failure: the kernels here compute it
            _log.debug("cuDNN does not take %s of %s: %s", kind, plan, error)
            return None

    def _graph(self, kind: str, dtype: Any, result: Any, plan: ConvGeometry) -> Any:
        library = self.library
        types = library.data_type
        own, wide = getattr(types, _TYPES[dtype]), types.FLOAT
        graph = library.pygraph(
            io_data_type=own,
            intermediate_data_type=wide,
            compute_data_type=wide,
            handle=self._handle,
        )
        shapes = {
            "image": _at_least_2d(plan.input_shape),
            "weight": _at_least_2d(plan.weight_shape),
            "loss": _at_least_2d(plan.output_shape),
        }

        def operand(name: str, number: int) -> Any:
            shape = shapes[name]
            strides = _row_major(shape)
            return graph.tensor(
                name=name, dim=list(shape), stride=strides, data_type=own, uid=number
            )

        windows = {
            "pre_padding": _axis_attribute(plan, "before", 0),
            "post_padding": _axis_attribute(plan, "after", 0),
            "stride": _axis_attribute(plan, "stride", 1),
            "dilation": _axis_attribute(plan, "dilation", 1),
        }
        first, second = _OPERAND_IDS
        if kind == "fprop":
            image, weight = operand("image", first), operand("weight", second)
            made, shape = graph.conv_fprop(image=image, weight=weight, **windows), shapes["loss"]
        elif kind == "dgrad":
            loss, weight = operand("loss", first), operand("weight", second)
            made, shape = graph.conv_dgrad(loss=loss, filter=weight, **windows), shapes["image"]
        else:
            image, loss = operand("image", first), operand("loss", second)
            made, shape = graph.conv_wgrad(image=image, loss=loss, **windows), shapes["weight"]
        made.set_output(True).set_dim(list(shape)).set_stride(_row_major(shape))
        made.set_data_type(getattr(types, _TYPES[result])).set_uid(_RESULT_ID)
        graph.validate()
        graph.build_operation_graph()
        return graph


def _at_least_2d(shape: Shape) -> Shape:
    """Add an axis of length 1 to shapes with one spatial axis: cuDNN requires two or three."""
    return shape if len(shape) > 3 else (*shape[:2], 1, *shape[2:])


def _axis_attribute(plan: ConvGeometry, name: str, alone: int) -> list[int]:
    numbers = [int(getattr(axis, name)) for axis in plan.axes]
    return numbers if len(numbers) > 1 else [alone, *numbers]


def _row_major(shape: Shape) -> list[int]:
    strides, step = [], 1
    for length in reversed(shape):
        strides.append(step)
        step *= length
    return strides[::-1]
