"""Kernels whose text devices share: one source and one host, and a header for each dialect.

A source in the folder ``sources`` is C with the macros of a dialect, which the header of a plugin
defines. The methods beside it launch it on a `KernelLauncher`, which the plugin implements.
"""

from burn.shared_kernels.channels import ChannelOps
from burn.shared_kernels.elements import (
    COMPLEX_TYPES,
    DTYPE_CODES,
    SCALAR_CODE,
    WORD_CODES,
    accumulator_dtype,
    as_signed,
    c_type_of,
    divider,
    rounded,
    scalar_bits,
    signed_scalar_bits,
    storage_bits,
)
from burn.shared_kernels.indexing import IndexingOps, Update
from burn.shared_kernels.launching import (
    MAX_KERNEL_AXES,
    KernelLauncher,
    SharedOps,
    shared_source,
)
from burn.shared_kernels.pooling import PoolingOps
from burn.shared_kernels.random import RandomOps
from burn.shared_kernels.resampling import ResamplingOps
from burn.shared_kernels.sampling import SamplingOps
from burn.shared_kernels.scan import ScanOps
from burn.shared_kernels.searching import SearchingOps
from burn.shared_kernels.unfolding import UnfoldingOps
from burn.shared_kernels.windows import fits_windows, launch_columns, launch_fold

__all__ = [
    "COMPLEX_TYPES",
    "DTYPE_CODES",
    "MAX_KERNEL_AXES",
    "SCALAR_CODE",
    "WORD_CODES",
    "ChannelOps",
    "IndexingOps",
    "KernelLauncher",
    "PoolingOps",
    "RandomOps",
    "ResamplingOps",
    "SamplingOps",
    "ScanOps",
    "SearchingOps",
    "SharedOps",
    "UnfoldingOps",
    "Update",
    "accumulator_dtype",
    "as_signed",
    "c_type_of",
    "divider",
    "fits_windows",
    "launch_columns",
    "launch_fold",
    "rounded",
    "scalar_bits",
    "shared_source",
    "signed_scalar_bits",
    "storage_bits",
]
