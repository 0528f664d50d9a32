"""Write the table of who computes each family of ops on each backend, from what the backends have.

    .venv/bin/python docs/bodies.py            writes docs/authors/bodies.md
    .venv/bin/python docs/bodies.py --check    says whether it is out of date

`OWN` has each module of a plugin with methods for ops: what computes there, why it is not
generated, and what `benchmarks/own_methods.py` says. A module that is missing, or that has no op
any more, is an error.
"""

from __future__ import annotations

import collections
import functools
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final
from unittest.mock import MagicMock

import burn
from burn.ops import REGISTRY, Op, OpTable
from burn.plugin_api import DeviceId, resolve

PAGE: Final = Path(__file__).parent / "authors" / "bodies.md"

NUMPY: Final = "NumPy"
PYTORCH: Final = "PyTorch"
OURS: Final = frozenset({"kernels of CUDA", "kernels of OpenCL", "numba", "LLVM"})
"""Texts of kernels that belong to one backend: each is a body of ours."""

GENERATED: Final = "generated"
SHARED: Final = "shared source"

OWN: Final[dict[str, tuple[str, ...]]] = {
    "burn_cpu.arithmetic": (NUMPY, "few elements, and what NumPy has", "`add` 1.1, `atan2` 18"),
    "burn_cpu.attention": ("numba", "products of blocks by BLAS, and what stands between"),
    "burn_cpu.backend": (NUMPY, "casts"),
    "burn_cpu.complex_functions": (NUMPY, "complex numbers, which kernels do not have"),
    "burn_cpu.convolution": (
        "numba",
        "products of windows; the tile kernels are to come",
        "`conv` 1.2, `unfold4d` 1.5",
    ),
    "burn_cpu.ctc": (NUMPY, "a loop over frames"),
    "burn_cpu.deformable": (NUMPY, "gathers of four elements, and BLAS"),
    "burn_cpu.indexing": (NUMPY, "fancy indexing; NumPy checks indices"),
    "burn_cpu.layout": (NUMPY, "views"),
    "burn_cpu.linear_algebra": ("BLAS", "products of matrices"),
    "burn_cpu.packing": (NUMPY, "views of bytes"),
    "burn_cpu.pooling": (NUMPY, "windows axis by axis"),
    "burn_cpu.quantization": ("numba", "codes and scales in one pass"),
    "burn_cpu.quantized_products": ("numba", "codes that are restored in registers"),
    "burn_cpu.random": ("LLVM", "Philox on all threads, and ahead of use"),
    "burn_cpu.recurrent": ("numba", "products by BLAS, and the passes between"),
    "burn_cpu.reduction": (
        NUMPY,
        "few elements, scans, order; large reductions are generated",
        "`cumsum` 3.0, `argmax` 2.0",
    ),
    "burn_cpu.signal": (NUMPY, "`numpy.fft`", "`rfft` 4.4"),
    "burn_cuda.attention": ("kernels of CUDA", "tensor cores"),
    "burn_cuda.complex_numbers": ("kernels of CUDA", "complex numbers, which kernels do not have"),
    "burn_cuda.convolution": ("cuDNN, cuBLAS", "and Winograd's transform"),
    "burn_cuda.elementwise": ("kernels of CUDA", "core's formulas on any layout, without a copy"),
    "burn_cuda.indexing": ("kernels of CUDA", "atomic updates"),
    "burn_cuda.layout": ("kernels of CUDA", "copies of any layout"),
    "burn_cuda.linear_algebra": ("cuBLAS", "products; integers by a kernel"),
    "burn_cuda.normalization": ("kernels of CUDA", "rows in registers"),
    "burn_cuda.pooling": ("kernels of CUDA", "images in shared memory"),
    "burn_cuda.quantization": ("kernels of CUDA", "codes and scales in one pass"),
    "burn_cuda.quantized_linear": ("kernels of CUDA", "codes that are restored in registers"),
    "burn_cuda.quantized_products": ("cuBLASLt", "tensor cores"),
    "burn_cuda.recurrent": ("kernels of CUDA", "steps between products"),
    "burn_cuda.reduction": ("kernels of CUDA", "complex numbers, order, one pass"),
    "burn_cuda.softmax": ("kernels of CUDA", "rows in registers"),
    "burn_cuda.sorting": ("Thrust", "a radix sort of keys"),
    "burn_opencl.attention": ("kernels of OpenCL", "rows of scores between products"),
    "burn_opencl.complex_numbers": ("kernels of OpenCL", "complex numbers"),
    "burn_opencl.convolution": ("kernels of OpenCL", "products of windows", "`conv` 1.8"),
    "burn_opencl.elementwise": (
        "kernels of OpenCL",
        "core's formulas on any layout, no copy",
        "`add` 1.3, `exp` 1.0",
    ),
    "burn_opencl.fourier": ("kernels of OpenCL", "mixed radix; there is no library", "`rfft` 1.8"),
    "burn_opencl.layout": ("kernels of OpenCL", "copies of any layout"),
    "burn_opencl.linear_algebra": ("kernels of OpenCL", "tiles and panels; CLBlast where faster"),
    "burn_opencl.normalization": ("kernels of OpenCL", "rows", "`layer_norm` 1.5"),
    "burn_opencl.quantization": ("kernels of OpenCL", "codes and scales in one pass"),
    "burn_opencl.quantized_products": ("kernels of OpenCL", "codes restored in registers"),
    "burn_opencl.reduction": (
        "kernels of OpenCL",
        "complex numbers, order, parts",
        "`sum` 1.3, `argmax` 1.6",
    ),
    "burn_opencl.softmax": ("kernels of OpenCL", "rows", "`softmax` 1.6"),
    "burn_opencl.sorting": ("kernels of OpenCL", "a radix sort; there is no library"),
}


def main() -> int:
    """Write the page, or compare it; returns the exit status."""
    text = "\n".join(page()) + "\n"
    is_stale = not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text
    if "--check" in sys.argv:
        sys.stdout.write("docs/authors/bodies.md is out of date: run docs/bodies.py\n" * is_stale)
        return int(is_stale)
    PAGE.write_text(text, encoding="utf-8", newline="\n")
    return 0


def page() -> Iterable[str]:
    """The lines of the page."""
    tables = {name: make() for name, make in TABLES.items()}
    families: dict[str, list[Op]] = {}
    for op in REGISTRY.values():
        if op.__module__.startswith("burn.ops."):
            families.setdefault(op.__module__.rpartition(".")[2], []).append(op)
    yield from (
        "# Who computes what",
        "",
        "What computes the ops of each family (a module of `burn.ops`) on our backends, and how",
        "many of them. `docs/bodies.py` writes this page from what the backends have.",
        "",
        f"- *{GENERATED}*: kernels of [the kernel language](kernels.md), with a writer a language.",
        f"- *{SHARED}*: a text of `burn/shared_kernels`, with a header for each language.",
        "- *kernels of CUDA*, *of OpenCL*, *numba*, *LLVM*: texts of one backend.",
        "- *default*: the decomposition into other operations; *host*: NumPy, after a read.",
        "",
        f"| family | {' | '.join(tables)} | bodies of ours |",
        f"|---|{'---|' * len(tables)}---|",
    )
    several = []
    used: set[str] = set()
    for family, ops in sorted(families.items()):
        cells, bodies = [], set()
        for table in tables.values():
            counts = collections.Counter(who(table, op, used) for op in ops)
            bodies |= {body for body in counts if body in OURS | {GENERATED, SHARED}}
            cells.append(", ".join([f"{body} {count}" for body, count in counts.most_common()]))
        if len(bodies) > 1:
            several.append(f"`{family}` ({len(bodies)})")
        yield f"| {family} | {' | '.join(cells)} | {len(bodies)} |"
    unused = OWN.keys() - used
    if unused:
        raise LookupError(f"docs/bodies.py lists modules that have no op: {sorted(unused)}")
    yield from (
        "",
        f"{len(several)} of {len(families)} families have more than one body of ours:",
        f"{', '.join(several)}.",
        "",
        "## Methods of backends",
        "",
        "The ratio is that of the CPU seconds of generated kernels to those of the method, for 10⁶",
        "elements or a small image, as `benchmarks/own_methods.py` measures it (OpenCL by PoCL).",
        "",
        "| module | computes by | for | ratio |",
        "|---|---|---|---|",
    )
    for module, (library, reason, *ratio) in sorted(OWN.items()):
        yield f"| `{module}` | {library} | {reason} | {''.join(ratio)} |"


def who(table: OpTable, op: Op, used: set[str]) -> str:
    """What computes an op on a device; a module of `OWN` that does is added to `used`."""
    origin = table.origin(op)
    if origin != "native":
        return "default" if origin == "derived" else origin
    method: Any = getattr(table.backend, op.name)
    while (inner := getattr(method, "__wrapped__", getattr(method, "func", None))) is not None:
        method = inner
    module = getattr(method, "__module__", None) or type(method).__module__
    if module in OWN:
        used.add(module)
        return OWN[module][0]
    if module.startswith("burn.shared_kernels."):
        return SHARED
    if module == "burn.kernels.steps":
        return GENERATED
    if module.partition(".")[0] in {"numpy", "torch"} or module == "burn.backend.array":
        return NUMPY if module[0] != "t" else PYTORCH
    if module.startswith("burn_torch."):
        return PYTORCH
    raise LookupError(f"docs/bodies.py does not list {module}, which has {op.name}")


def of_cuda() -> OpTable:
    """The table of burn-cuda on a GPU that is not there."""
    from burn_cuda.backend import CudaBackend

    runtime = functools.partial(MagicMock, capability=(9, 0), multiprocessors=132)
    backend = CudaBackend(lambda index: runtime(index=index), lambda: 1)
    return resolve(backend, DeviceId(0, 0))


def of(name: str) -> OpTable:
    """The table of a device."""
    return burn.Device(name).ops


TABLES: Final = {
    "cpu": functools.partial(of, "cpu"),
    "cuda": of_cuda,
    "opencl": functools.partial(of, "opencl"),
    "torch": functools.partial(of, "torch"),
}

if __name__ == "__main__":
    sys.exit(main())
