"""The kernels for GPUs in Oclgrind, a simulator that finds accesses beyond memory."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = shutil.which("oclgrind")
SIMULATOR = Path("/usr/lib/oclgrind/liboclgrind-rt-icd.so")

CHECKS = """
import sys
import burn
from burn.testing import Selection, Subject, groups_of
from burn_opencl import buffers

device = burn.Device("opencl")
buffers.piece_size = lambda size: max(size, 1)  # nothing behind a tensor is its own
launcher = device.backend.for_device(device.id).launcher
launcher.min_specialized_elements = 0
launcher.runtime.is_cpu, launcher.runtime.units = False, 132
count = 0
for suite in ("values", "long_axes"):
    for group in groups_of(Subject.of(device), Selection(suites=(suite,), quick=True)):
        # Kernels of `deform_*` take minutes there.
        if "products" in group.name if suite == "long_axes" else "deform" not in group.name:
            for check in group.checks:
                count += 1
                check.run()
print(count)
"""


@pytest.mark.exhaustive
@pytest.mark.skipif(PROGRAM is None or not SIMULATOR.exists(), reason="Oclgrind is not installed")
def test_kernels_stay_in_their_memory(tmp_path):
    (tmp_path / "oclgrind.icd").write_text(str(SIMULATOR))
    log = tmp_path / "log"
    # Its vectors of truth values are wrong where the compiler makes them.
    options = ["--build-options", "-cl-opt-disable", "--log", log]
    result = subprocess.run(
        [PROGRAM, *options, sys.executable, "-c", CHECKS],
        env={**os.environ, "OCL_ICD_VENDORS": str(tmp_path), "BURN_CACHE": "0"},
        capture_output=True,
        text=True,
        check=False,
        timeout=3600,
    )
    assert result.returncode == 0, result.stderr
    assert int(result.stdout.split()[-1]) > 3000
    assert log.read_text() == ""
