"""Every public name of ``burn``: what the ``__all__`` of the modules below list, and some classes.

`burn` takes a name from here when it is first used.
"""

import math as _math

from burn import (
    data as data,
    fft as fft,
    ir as ir,
    linalg as linalg,
    nn as nn,
    optim as optim,
    quantization as quantization,
    random as random,
    signal as signal,
    store as store,
    train as train,
    tree as tree,
)
from burn.device_id import DeviceId as DeviceId
from burn.devices import Device as Device, DeviceSettings as DeviceSettings
from burn.dispatch import Dispatch as Dispatch, Gradients as Gradients
from burn.dtype import (
    DType as DType,
    DTypeUsage as DTypeUsage,
    bfloat16 as bfloat16,
    bool_ as bool,
    complex64 as complex64,
    complex128 as complex128,
    float16 as float16,
    float32 as float32,
    float64 as float64,
    int8 as int8,
    int16 as int16,
    int32 as int32,
    int64 as int64,
    uint8 as uint8,
    uint16 as uint16,
    uint32 as uint32,
    uint64 as uint64,
)
from burn.errors import (
    ArgumentError as ArgumentError,
    AutodiffError as AutodiffError,
    AxisError as AxisError,
    BurnError as BurnError,
    DeviceMismatchError as DeviceMismatchError,
    DeviceUnavailableError as DeviceUnavailableError,
    DTypeError as DTypeError,
    ExecutionError as ExecutionError,
    ExportError as ExportError,
    GraphError as GraphError,
    MissingAttributeError as MissingAttributeError,
    MissingGradientError as MissingGradientError,
    OperandTypeError as OperandTypeError,
    OutOfMemoryError as OutOfMemoryError,
    OutOfRangeError as OutOfRangeError,
    PluginError as PluginError,
    ScalarRangeError as ScalarRangeError,
    ShapeError as ShapeError,
    StoreError as StoreError,
    TraceError as TraceError,
    UnsupportedOpError as UnsupportedOpError,
    WorkerError as WorkerError,
)
from burn.functions.calls import *
from burn.functions.creation import *
from burn.functions.cumulative import *
from burn.functions.data_type import *
from burn.functions.device_context import (
    default_device as default_device,
    set_default_device as set_default_device,
)
from burn.functions.einsum import *
from burn.functions.elementwise.arithmetic import *
from burn.functions.elementwise.bitwise import *
from burn.functions.elementwise.comparison import *
from burn.functions.elementwise.complex_numbers import *
from burn.functions.elementwise.exponential import *
from burn.functions.elementwise.extrema import *
from burn.functions.elementwise.logical import *
from burn.functions.elementwise.rounding import *
from burn.functions.elementwise.special import *
from burn.functions.elementwise.trigonometric import *
from burn.functions.gradient import *
from burn.functions.indexing import *
from burn.functions.inspection import __array_namespace_info__ as __array_namespace_info__
from burn.functions.integrals import *
from burn.functions.interchange import *
from burn.functions.joining import *
from burn.functions.linalg.diagonals import (
    diag as diag,
    diag_embed as diag_embed,
    diagonal as diagonal,
)
from burn.functions.linalg.distances import cdist as cdist
from burn.functions.linalg.linear_algebra import *
from burn.functions.linalg.products import kron as kron
from burn.functions.log_sums import *
from burn.functions.manipulation import *
from burn.functions.patterns import *
from burn.functions.polynomials import *
from burn.functions.printing import (
    Closeness as Closeness,
    PrintOptions as PrintOptions,
    check_closeness as check_closeness,
    set_print_options as set_print_options,
)
from burn.functions.rearranging import *
from burn.functions.scattering import *
from burn.functions.searching import *
from burn.functions.sets import *
from burn.functions.sorting import *
from burn.functions.statistical import *
from burn.functions.statistics.covariance import *
from burn.functions.statistics.histograms import *
from burn.functions.statistics.median import *
from burn.functions.statistics.nan_statistics import *
from burn.functions.statistics.quantiles import *
from burn.functions.triangles import *
from burn.functions.turning import *
from burn.functions.utility import *
from burn.plugins import (
    refresh_plugins as refresh_plugins,
    register_backend as register_backend,
    registered as registered,
)
from burn.profiling import profile as profile
from burn.public_calls import exports as _exports
from burn.tensor.tensor import Tensor as Tensor
from burn.tensor.transaction import Transaction as Transaction
from burn.tensor_data import TensorData as TensorData
from burn.transforms import *

_exports(globals())

e = _math.e
inf = _math.inf
nan = _math.nan
newaxis = None
pi = _math.pi

PUBLIC = sorted(
    name for name in globals() if not name.startswith("_") or name == "__array_namespace_info__"
)
"""Every public name. It is no ``__all__``: a type checker reads the imports above."""
