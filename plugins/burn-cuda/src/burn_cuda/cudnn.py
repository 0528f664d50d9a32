"""Convolutions of NVIDIA's cuDNN, where its Python package is installed: the extra ``cudnn``.

The package is the front end (https://docs.nvidia.com/deeplearning/cudnn/frontend/latest). Each
sort of convolution is a graph that is planned once. Nothing here is needed: what cuDNN does not
take, or takes no faster, the kernels of this plugin compute.
"""

from __future__ import annotations

import functools
import importlib
import logging
import math
import os
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from burn.plugin_api import ConvGeometry, Shape, bfloat16, float16, float32

__all__ = ["Cudnn", "installed"]

Array = Any

_log = logging.getLogger("burn")

_TYPES: Final = {float32.numpy: "FLOAT", float16.numpy: "HALF", bfloat16.numpy: "BFLOAT16"}
"""What cuDNN calls the dtypes; float64 is faster as products of matrices."""

_NOT_ALIKE: Final = ("NONDETERMINISTIC", "REDUCED_PRECISION_REDUCTION", "DOWN_CONVERT_INPUTS")
_NOT_LOCAL: Final = (
    *("FFT", "WINOGRAD", "WINOGRAD_TILE_4x4", "WINOGRAD_TILE_6x6", "WINOGRAD_TILE_13x13"),
)
"""Sorts of engines that are left out: the same call gives the same numbers, as exactly as float32
adds them up, and an element that is not finite has no part in results that do not depend on it."""

_LITTLE_WORK: Final = 1 << 25
"""With fewer products launches are what takes time, and cuDNN has one."""

_CLOSE: Final = {"dgrad": (2, 3), "wgrad": (2,)}
"""Numbers of axes along which it is faster in float32 where windows follow each other closely."""

_MOST_BYTES: Final = 1 << 30
_SHARE: Final = 64
"""A work space is at most this part of the memory, and no more than that many bytes."""

_MOST_PLANS: Final = 1024
_OPERANDS: Final = (1, 2)
_RESULT: Final = 3
"""Numbers of the tensors in a graph."""


@functools.cache
def installed() -> Any | None:
    """The package ``cudnn``; None where there is none, or ``BURN_CUDA_CUDNN=0``."""
    if os.environ.get("BURN_CUDA_CUDNN") == "0":
        return None
    try:
        return importlib.import_module("cudnn")
    except Exception as error:  # noqa: BLE001 — of whatever library: it is not needed
        _log.debug("cuDNN is not used: %s: %s", type(error).__name__, error)
        return None


class Cudnn:
    """The convolutions of one device.

    Parameters
    ----------
    library : module
        The package ``cudnn``.
    empty : callable
        Makes an array of a shape and a dtype, for a work space.
    memory : int
        Bytes of memory of the device.

    Attributes
    ----------
    takes_all : bool
        Whether it is asked for all that it can do, also where it is no faster.
    """

    def __init__(self, library: Any, empty: Callable[[Shape, Any], Array], memory: int) -> None:
        self.library = library
        self.empty = empty
        self.takes_all = False
        self._room = min(_MOST_BYTES, memory // _SHARE)
        self._handle: Any = None
        self._lock = threading.Lock()
        self._plans: dict[Any, tuple[Any, int] | None] = {}

    def suits(self, kind: str, plan: ConvGeometry, dtype: Any) -> bool:
        """Whether a convolution, of a kind as for `run`, is one to ask cuDNN for.

        On an H200 cuDNN 9.19 is faster in 16 bits throughout, and in float32 forwards, where each
        channel is alone, and for little work; backwards with the engines that are left it loses to
        products of matrices wherever windows do not follow each other closely.
        """
        work = plan.batch * plan.outputs * math.prod(plan.counts) * plan.terms
        if dtype not in _TYPES or len(plan.axes) > 3 or not work:
            return False
        if self.takes_all or dtype != np.float32:
            return True
        if plan.groups == 1 and all(axis.kernel == axis.stride == 1 for axis in plan.axes):
            return False  # it is a product of matrices as it lies
        if kind == "fprop" or plan.groups == plan.inputs or work < _LITTLE_WORK:
            return True
        close = plan.groups == 1 and all(axis.stride == axis.dilation == 1 for axis in plan.axes)
        return close and len(plan.axes) in _CLOSE[kind]

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
        """Write a convolution to `out`, and whether cuDNN took it.

        Parameters
        ----------
        kind : str
            ``"fprop"`` of images and weights, ``"dgrad"`` of the slopes of results and weights, or
            ``"wgrad"`` of images and the slopes of results.
        operands : sequence of array
            The two, dense.
        out : array
            Where the result goes, dense; of 16-bit operands it may be float32.
        plan : ConvGeometry
            The windows of the convolution whose result, or gradient, this is.
        stream : int
            Address of the stream.
        tf32 : bool
            Whether float32 may be multiplied in TF32.
        """
        key = (kind, operands[0].dtype, out.dtype, tf32, plan)
        with self._lock:
            if self._handle is None:
                self._handle = self.library.create_handle()
            self.library.set_stream(handle=self._handle, stream=stream)
            if key not in self._plans:
                if len(self._plans) >= _MOST_PLANS:
                    self._plans.clear()
                self._plans[key] = self._planned(*key)
            found = self._plans[key]
            if found is None:
                return False
            graph, size = found
            space = self.empty((max(size, 1),), np.uint8)
            tensors = dict(zip(_OPERANDS, [_address(one) for one in operands], strict=True))
            tensors[_RESULT] = _address(out)
            try:
                graph.execute(tensors, _address(space), handle=self._handle)
            except Exception as error:  # noqa: BLE001 — whatever it is: the kernels here take it
                _log.debug("cuDNN fails at %s of %s: %s", kind, plan, error)
                self._plans[key] = None
                return False
        return True

    def _planned(
        self, kind: str, dtype: Any, result: Any, tf32: bool, plan: ConvGeometry
    ) -> tuple[Any, int] | None:
        """A graph and the bytes of its work space; None where cuDNN has no engine for it."""
        try:
            graph = self._graph(kind, dtype, result, plan)
            modes = self.library.heur_mode
            graph.create_execution_plans([modes.A, modes.FALLBACK])
            notes = [*_NOT_ALIKE, *_NOT_LOCAL]
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
        except Exception as error:  # noqa: BLE001 — whatever it is: the kernels here take it
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
            "pre_padding": _along(plan, "before", 0),
            "post_padding": _along(plan, "after", 0),
            "stride": _along(plan, "stride", 1),
            "dilation": _along(plan, "dilation", 1),
        }
        first, second = _OPERANDS
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
        made.set_data_type(getattr(types, _TYPES[result])).set_uid(_RESULT)
        graph.validate()
        graph.build_operation_graph()
        return graph


def _address(x: Array) -> int:
    return int(x.data.ptr)


def _at_least_2d(shape: Shape) -> Shape:
    """Shapes of one spatial axis get another one of length 1: cuDNN has two or three."""
    return shape if len(shape) > 3 else (*shape[:2], 1, *shape[2:])


def _along(plan: ConvGeometry, name: str, alone: int) -> list[int]:
    numbers = [int(getattr(axis, name)) for axis in plan.axes]
    return numbers if len(numbers) > 1 else [alone, *numbers]


def _row_major(shape: Shape) -> list[int]:
    strides, step = [], 1
    for length in reversed(shape):
        strides.append(step)
        step *= length
    return strides[::-1]
