"""Backends that conform and are unlike burn's own, and the kit on them: a program of its own.

The device is the only one of the process if ``BURN_PLUGINS`` names no plugin. What `copying`
returns from `to_data` is a copy, it takes no host memory, and it computes with few dtypes. The
device `few` has only those that every device needs, and refuses all others.

    python tests/shared/unlike_backends.py NAME [SUITE:OP ...]

runs the quick kit, or of the named suites the checks of one op or function, and prints failures.
"""

import sys

import numpy as np

import burn
from burn.dtype import DType
from burn.plugin_api import BackendSpec, DeviceInfo, DTypeUsage, TensorData
from burn.testing import MockDevice, NumpyBackend, mock_backend, run

DTYPES = ("bool", "int8", "int16", "int32", "uint8", "float32")


class CopyingBackend(NumpyBackend):
    """Arrays that are read by copies, of 32 bits at most, and no complex ones."""

    def name(self, device):
        return "copying"

    def device_count(self, type_id):
        return 1 if type_id == 0 else 0

    def dtype_usage(self, device, dtype):
        return DTypeUsage.GENERAL if dtype.name in DTYPES else DTypeUsage.NONE

    def to_data(self, x):
        return TensorData(np.array(x))

    def share(self, data, device):
        return None


SPEC = BackendSpec(
    name="copying",
    load=CopyingBackend,
    probe=lambda: [DeviceInfo("npu", 0, hardware="a unit")],
    device_types=("npu",),
)


NEEDED = ("bool", "int32", "float32")

FEW = mock_backend(
    "few",
    [
        MockDevice(
            "npu", without=[dtype.name for dtype in DType.members() if dtype.name not in NEEDED]
        )
    ],
)


def main(name, *wanted):
    """Run the kit; the exit status says whether the device conforms."""
    burn.register_backend({"copying": SPEC, "few": FEW}[name])
    count = 0
    for suite, _, op in [text.partition(":") for text in wanted] or [("", "", "")]:
        report = run(
            name,
            quick=True,
            suites=[suite] if suite else [],
            ops=[op] if op else [],
            workers=0,
        )
        failed = [
            result for result in report.results if result.status.value in {"failed", "unexpected"}
        ]
        for item in failed:
            sys.stdout.write(f"{item.check.name} {item.message}\n")
        if failed:
            return 1
        count += sum(result.status.value == "passed" for result in report.results)
    devices = ", ".join(map(str, burn.Device.enumerate()))
    sys.stdout.write(f"{count} passed on {devices}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
