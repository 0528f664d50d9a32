"""Convolutions of cuDNN: the graphs, by a fake library, and on a GPU the results."""

import ctypes
import os
import subprocess
import sys
import types
import weakref
from pathlib import Path

import numpy as np
import pytest

import burn
from burn.plugin_api import conv_geometry
from burn_cuda import cudnn as own
from burn_cuda.backend import CudaBackend
from burn_cuda.cudnn import Cudnn

sys.path.insert(0, str(Path(__file__).parent / "emulation"))

import emulated

from burn.nn import functional as F

GPUS = burn.Device.enumerate("cuda")
HAS_CUDNN = bool(GPUS) and own.installed() is not None

on_gpu = pytest.mark.skipif(
    not HAS_CUDNN, reason="there is no NVIDIA GPU, or the package nvidia-cudnn-frontend is missing"
)
emulation = pytest.mark.skipif(
    emulated.COMPILER is None, reason="there is no C++ compiler to emulate a GPU with"
)

CASES = {
    "3 by 3": ((2, 4, 9, 8), (6, 4, 3, 3), {"padding": 1}),
    "strides": ((2, 3, 11, 12), (5, 3, 3, 2), {"padding": (1, 0), "stride": (2, 3)}),
    "dilated": ((1, 4, 12, 13), (2, 4, 3, 3), {"padding": 2, "dilation": (2, 1)}),
    "groups": ((2, 6, 7, 7), (9, 2, 3, 3), {"padding": 1, "groups": 3}),
    "each channel alone": ((2, 8, 9, 9), (8, 1, 5, 5), {"padding": 2, "groups": 8}),
    "one axis": ((3, 4, 20), (5, 4, 7), {"padding": 3, "stride": 2}),
    "three axes": ((1, 3, 6, 7, 5), (4, 3, 3, 3, 2), {"padding": (1, 1, 0)}),
    "points in groups": ((2, 8, 5, 5), (8, 4, 1, 1), {"groups": 2}),
    "wide": ((2, 16, 10, 10), (16, 16, 7, 7), {"padding": 3}),
    "rest behind the last window": ((1, 2, 10, 10), (2, 2, 3, 3), {"stride": 4}),
}


def convolve(x, weight, options):
    return {3: F.conv1d, 4: F.conv2d, 5: F.conv3d}[len(x.shape)](x, weight, **options)


def everything(device, dtype, case, bias, seed=0):
    """A convolution and its gradients, as arrays."""
    shape, kernel, options = CASES[case]
    generator = np.random.default_rng(seed)
    given = [generator.standard_normal(item) for item in (shape, kernel, (kernel[0],))]
    tensors = [
        burn.asarray(item, dtype=dtype, device=device.autodiff()).require_grad() for item in given
    ]
    x, weight, numbers = tensors
    y = convolve(x, weight, {**options, "bias": numbers} if bias else options)
    gradients = (y * y).sum().backward()
    used = tensors if bias else tensors[:2]
    results = [y.inner(), *[item.grad(gradients) for item in used]]
    return [result.astype("float64").numpy() for result in results]


def compare(results, expected, tolerance):
    for result, wanted in zip(results, expected, strict=True):
        assert result.shape == wanted.shape
        assert np.linalg.norm(result - wanted) <= tolerance * np.linalg.norm(wanted)


# The graphs.


class Array:
    """Memory at an address, with a shape."""

    def __init__(self, address, shape, dtype):
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        memory = (ctypes.c_char * size).from_address(address)
        self.values = np.frombuffer(memory, dtype).reshape(shape)


class Tensor:
    def __init__(self, **known):
        self.__dict__.update(known)

    def __getattr__(self, name):
        def setter(value):
            setattr(self, name.removeprefix("set_"), value)
            return self

        return setter


class Graph:
    """A graph of cuDNN, computed by PyTorch."""

    def __init__(self, library, **options):
        self.library = library
        self.options = options

    def tensor(self, **known):
        return Tensor(**known)

    def conv_fprop(self, **given):
        return self._made("fprop", given, ("image", "weight"))

    def conv_dgrad(self, **given):
        return self._made("dgrad", given, ("loss", "filter"))

    def conv_wgrad(self, **given):
        return self._made("wgrad", given, ("image", "loss"))

    def _made(self, kind, given, names):
        self.kind = kind
        self.operands = [given.pop(name) for name in names]
        self.windows = given
        self.result = Tensor()
        return self.result

    def validate(self):
        if self.library.refuses:
            raise RuntimeError("no engine")

    def __getattr__(self, name):
        return lambda *given: None

    def deselect_numeric_notes(self, notes):
        self.library.notes.append(notes)

    def get_workspace_size(self):
        return 64

    def execute(self, pointers, space, handle):
        import torch

        self.library.executed.append(self.kind)
        kinds = {"FLOAT": np.float32, "HALF": np.float16}
        assert self.result.output is True
        all_of = [*self.operands, self.result]
        arrays = [
            Array(pointers[item.uid], item.dim, kinds[item.data_type]).values for item in all_of
        ]
        for item, array in zip(all_of, arrays, strict=True):
            assert tuple(number * array.itemsize for number in item.stride) == array.strides
        first, second = [torch.from_numpy(array.astype(np.float64)) for array in arrays[:2]]
        shapes = {name: tuple(item.dim) for name, item in zip("abc", all_of, strict=True)}
        image = shapes["c"] if self.kind == "dgrad" else shapes["a"]
        weight = shapes["c"] if self.kind == "wgrad" else shapes["b"]
        windows = self.windows
        assert len(windows["stride"]) == len(image) - 2
        x = torch.zeros(image, dtype=torch.float64).requires_grad_()
        w = torch.zeros(weight, dtype=torch.float64).requires_grad_()
        with torch.no_grad():
            if self.kind != "dgrad":
                x += first
            if self.kind != "wgrad":
                w += second
        sides = zip(windows["pre_padding"], windows["post_padding"], strict=True)
        padding = [number for pair in reversed(list(sides)) for number in pair]
        padded = torch.nn.functional.pad(x, padding)
        function = {4: torch.nn.functional.conv2d, 5: torch.nn.functional.conv3d}[len(image)]
        y = function(
            padded,
            w,
            stride=windows["stride"],
            dilation=windows["dilation"],
            groups=image[1] // weight[1],
        )
        if self.kind == "fprop":
            found = y
        else:
            y.backward(second if self.kind == "wgrad" else first)
            found = w.grad if self.kind == "wgrad" else x.grad
        arrays[2][...] = found.detach().numpy()


class Library:
    """The package, as far as it is used."""

    heur_mode = types.SimpleNamespace(A="A", FALLBACK="FALLBACK")
    build_plan_policy = types.SimpleNamespace(HEURISTICS_CHOICE="first")
    numerical_note = types.SimpleNamespace(
        TENSOR_CORE="tensor core", NONDETERMINISTIC="any order", WINOGRAD_TILE_4x4="tiles"
    )
    data_type = types.SimpleNamespace(FLOAT="FLOAT", HALF="HALF", BFLOAT16="BFLOAT16")

    def __init__(self, *, refuses=False):
        self.refuses = refuses
        self.executed = []
        self.notes = []
        self.streams = []
        self.graphs = weakref.WeakSet()
        self.destroyed = []

    def create_handle(self):
        return "handle"

    def destroy_handle(self, handle):
        assert not self.graphs  # they are freed before
        self.destroyed.append(handle)

    def set_stream(self, handle, stream):
        self.streams.append((handle, stream))

    def pygraph(self, **options):
        assert options["handle"] == "handle"
        graph = Graph(self, **options)
        self.graphs.add(graph)
        return graph


def with_library(library, tf32=False):
    """An emulated driver whose convolutions a library computes."""

    class Runtime(emulated.Runtime):
        def __init__(self, index):
            super().__init__(index)
            self.tf32 = tf32
            self.cudnn = Cudnn(library, self.empty, 1 << 36)
            self.cudnn.is_unrestricted = True

        def convolve(self, kind, operands, out, plan):
            self.check(*operands, out)
            return self.cudnn.run(kind, operands, out, plan, 7, tf32=self.tf32)

    return Runtime


@pytest.fixture
def device():
    """A device with a fake library, and the library."""
    pytest.importorskip("torch", reason="torch is not installed")
    library = Library()

    def probe():
        return [burn.plugins.DeviceInfo("cuda", 0, hardware="none")]

    def load():
        return CudaBackend(with_library(library), lambda: 1)

    spec = burn.plugins.BackendSpec("fake", load=load, probe=probe, device_types=("cuda",))
    with burn.registered(spec):
        yield burn.Device("fake"), library


@emulation
@pytest.mark.parametrize("bias", [False, True], ids=["plain", "bias"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("case", CASES)
def test_the_graph_is_that_of_the_convolution(device, case, dtype, bias):
    fake_device, library = device
    results = everything(fake_device, dtype, case, bias)
    expected = everything(burn.Device("cpu"), dtype, case, bias)
    compare(results, expected, 1e-5 if dtype == "float32" else 3e-3)
    assert set(library.executed) == {"fprop", "dgrad", "wgrad"}
    assert set(library.streams) == {("handle", 7)}


@emulation
def test_what_cudnn_does_not_support_is_computed_by_the_plugin():
    library = Library(refuses=True)
    backend = CudaBackend(with_library(library), lambda: 1)
    x = backend.runtime.upload(np.ones((1, 2, 5, 5), np.float32))
    weight = backend.runtime.upload(np.ones((3, 2, 3, 3), np.float32))
    windows = {"stride": (1, 1), "padding": ((0, 0), (0, 0)), "dilation": (1, 1), "groups": 1}
    for _ in range(2):
        y = backend.conv(x, weight, None, **windows)
        np.testing.assert_array_equal(backend.to_data(y).array, np.full((1, 3, 3, 3), 18.0))
    assert not library.executed


PACKAGE = """
import atexit, types, weakref

made = weakref.WeakValueDictionary()
handles = []

class Graph:
    def __getattr__(self, name):
        return lambda *given, **named: made.setdefault(name, Graph())
    def get_workspace_size(self):
        return 0

def pygraph(**options):
    return made.setdefault("graph", Graph())

def create_handle():
    handles.append("handle")
    return "handle"

def destroy_handle(handle):
    assert "graph" not in made, "the graphs are freed before"
    handles.remove(handle)

def set_stream(handle, stream):
    pass

def report():
    print("left:", sorted(made), handles)

data_type = types.SimpleNamespace(FLOAT=0, HALF=1, BFLOAT16=2)
heur_mode = types.SimpleNamespace(A=0, FALLBACK=1)
build_plan_policy = types.SimpleNamespace(HEURISTICS_CHOICE=0)
numerical_note = types.SimpleNamespace()
atexit.register(report)
"""

RUN = """
import sys
import numpy as np
from burn.plugin_api import conv_geometry
from burn_cuda import cudnn as own

one = own.Cudnn(own.installed(), lambda shape, dtype: space, 1 << 36)
space = type("Space", (), {"address": 0, "dtype": np.dtype("float32")})
plan = conv_geometry(
    (1, 2, 5, 5), (3, 2, 3, 3), stride=(1, 1), padding=((0, 0),) * 2, dilation=(1, 1), groups=1
)
assert one.run("fprop", [space, space], space, plan, 7, tf32=False)
sys.kept = one  # until the interpreter ends
if "fork" in sys.argv:
    import os

    child = os.fork()
    if child:
        os.waitpid(child, 0)
        os._exit(0)
"""


@pytest.mark.parametrize("forked", [False, True])
def test_when_a_process_ends_nothing_of_the_package_is_left(forked, tmp_path):
    (tmp_path / "cudnn.py").write_text(PACKAGE)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path.rstrip(os.pathsep)}
    command = [sys.executable, "-c", RUN, *(["fork"] if forked else [])]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    # What a forked process has, the driver cannot free there.
    expected = "left: ['graph'] ['handle']" if forked else "left: [] []"
    assert done.stdout.strip() == expected, done.stderr


def test_what_is_closed_takes_no_convolution():
    library = Library()
    closed = Cudnn(library, np.empty, 1 << 36)
    closed.close()
    closed.close()
    plan = plan_of((1, 2, 5, 5), (3, 2, 3, 3))
    operand = types.SimpleNamespace(dtype=np.dtype("float32"), address=0)
    assert not closed.run("fprop", [operand, operand], operand, plan, 7, tf32=False)
    assert not library.destroyed


def plan_of(shape, kernel, stride=1, padding=0, dilation=1, groups=1):
    rank = len(shape) - 2
    return conv_geometry(
        shape,
        kernel,
        stride=(stride,) * rank,
        padding=((padding, padding),) * rank,
        dilation=(dilation,) * rank,
        groups=groups,
    )


LARGE = (64, 64, 56, 56)


@pytest.mark.parametrize(
    ("plan", "float32", "float16"),
    [
        (plan_of(LARGE, (64, 64, 5, 5), padding=2), "fdw", "fdw"),
        (plan_of(LARGE, (64, 64, 1, 1)), "", "fdw"),
        (plan_of(LARGE, (64, 64, 3, 3), stride=2), "f", "fdw"),
        (plan_of(LARGE, (64, 64, 3, 3), dilation=2), "f", "fdw"),
        (plan_of(LARGE, (64, 2, 3, 3), groups=32), "f", "fdw"),
        (plan_of(LARGE, (64, 1, 3, 3), groups=64), "fdw", "fdw"),
        (plan_of((64, 64, 4096), (64, 64, 9)), "f", "fdw"),
        (plan_of((8, 32, 16, 56, 56), (64, 32, 3, 3, 3)), "fd", "fdw"),
        (plan_of((2, 4, 9, 9), (4, 4, 3, 3), stride=2), "fdw", "fdw"),
        (plan_of((64, 1, 28, 28), (32, 1, 3, 3)), "fdw", "fdw"),
        (plan_of((128, 1, 28, 28), (32, 1, 3, 3)), "fd", "fdw"),
        (plan_of((1, 2, 3, 4, 5, 6), (2, 2, 2, 2, 2, 2)), "", ""),
        (plan_of((0, 4, 9, 9), (4, 4, 3, 3)), "", ""),
    ],
)
def test_cudnn_is_used_where_it_was_measured_to_be_faster(plan, float32, float16):
    library = Cudnn(Library(), np.empty, 1 << 36)
    for dtype, kinds in ((burn.float32, float32), (burn.float16, float16), (burn.float64, "")):
        for kind in ("fprop", "dgrad", "wgrad"):
            assert library.suits(kind, plan, dtype.numpy) == (kind[0] in kinds), (dtype, kind)


@emulation
@pytest.mark.parametrize("tf32", [False, True])
def test_float32_is_multiplied_as_float32_unless_tf32_is_on(tf32):
    library = Library()
    backend = CudaBackend(with_library(library, tf32), lambda: 1)
    pytest.importorskip("torch", reason="torch is not installed")
    x = backend.runtime.upload(np.ones((1, 2, 5, 5), np.float32))
    weight = backend.runtime.upload(np.ones((3, 2, 3, 3), np.float32))
    windows = {"stride": (1, 1), "padding": ((0, 0), (0, 0)), "dilation": (1, 1), "groups": 1}
    backend.conv(x, weight, None, **windows)
    (notes,) = library.notes
    assert ("tensor core" in notes) != tf32
    assert {"any order", "tiles"} <= set(notes)


def test_without_the_package_nothing_is_missing(monkeypatch):
    def fail(name):
        raise OSError("libcudnn.so.9: cannot open shared object file")

    monkeypatch.setattr(own.importlib, "import_module", fail)
    assert own.installed.__wrapped__() is None
    monkeypatch.setattr(own.importlib, "import_module", lambda name: name)
    monkeypatch.delenv("BURN_CUDA_CUDNN", raising=False)
    assert own.installed.__wrapped__() == "cudnn"
    monkeypatch.setenv("BURN_CUDA_CUDNN", "0")
    assert own.installed.__wrapped__() is None


# The results.


@on_gpu
@pytest.mark.parametrize("bias", [False, True], ids=["plain", "bias"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("case", CASES)
def test_its_convolutions_are_those_of_the_cpu(case, dtype, bias, monkeypatch):
    device = burn.Device("cuda")
    driver = device.ops.backend.runtime
    monkeypatch.setattr(driver.cudnn, "is_unrestricted", True)
    results = everything(device, dtype, case, bias)
    expected = everything(burn.Device("cpu"), dtype, case, bias)
    compare(results, expected, {"float32": 1e-5, "float16": 3e-3, "bfloat16": 2e-2}[dtype])
    again = everything(device, dtype, case, bias)
    for item, other in zip(results, again, strict=True):
        np.testing.assert_array_equal(item, other)


@on_gpu
def test_it_works_on_the_streams_and_in_the_threads_of_the_program(monkeypatch):
    import threading

    cupy = pytest.importorskip("cupy")
    device = burn.Device("cuda")
    monkeypatch.setattr(device.ops.backend.runtime.cudnn, "is_unrestricted", True)
    expected = everything(burn.Device("cpu"), "float32", "wide", bias=True)
    wrong = []

    def work():
        try:
            with cupy.cuda.Stream(non_blocking=True):
                for _ in range(10):
                    compare(everything(device, "float32", "wide", bias=True), expected, 1e-5)
        except BaseException as error:  # noqa: BLE001 — any failure: it fails the test
            wrong.append(error)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not wrong
    assert not any(thread.is_alive() for thread in threads)
