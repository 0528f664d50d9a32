"""Debian's clang, which compiles HIP without a GPU: what it says of kernels."""

import functools
import shutil
import subprocess
from pathlib import Path

import kernel_cache

from burn_cuda.dialect import HIP_OPTIONS

ARCHITECTURES = ("gfx90a", "gfx1030")
"""One of 64 lanes and one of 32; Debian's device libraries have none that came later."""

COMPILER = shutil.which("clang-15")
LIBRARIES = Path("/usr/lib/x86_64-linux-gnu/amdgcn/bitcode")
HEADERS = Path("/usr/include/hip/amd_detail")
IS_INSTALLED = (
    COMPILER is not None
    and shutil.which("ld.lld-15") is not None
    and LIBRARIES.is_dir()
    and HEADERS.is_dir()
)

OPTIONS = (
    # As AMD's run-time compiler does it: without headers of the host.
    *("-x", "hip", "--cuda-device-only", "-nogpuinc", "-D__HIPCC_RTC__"),
    *("-include", "__clang_hip_runtime_wrapper.h", "-include", "hip/hip_runtime.h"),
    *("-include", "hip/amd_detail/amd_warp_functions.h"),
    *(f"--rocm-device-lib-path={LIBRARIES}", "--no-gpu-bundle-output", "-O1", "-w", *HIP_OPTIONS),
)


@functools.cache
def version():
    """What the compiler says of itself."""
    return subprocess.run(
        [COMPILER, "--version"], capture_output=True, text=True, check=True
    ).stdout


def errors(source, architecture):
    """What the compiler and the linker find wrong with kernels; empty where they are right.

    Kernels that they accepted are not compiled again by the same version with the same options.
    """
    options = (*OPTIONS, f"--offload-arch={architecture}")
    accepted = kernel_cache.folder("hip") / kernel_cache.key(version(), str(options), source)
    if accepted.exists():
        return ""
    command = [COMPILER, *options, "-c", "-", "-o", "/dev/null"]
    done = subprocess.run(command, input=source, capture_output=True, text=True, check=False)
    if not done.returncode:
        accepted.touch()
    return done.stderr if done.returncode else ""
