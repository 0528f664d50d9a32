"""Suite ``silence``: float results that are not finite are no reason to warn.

The filters that a backend sets up when it is loaded are part of what is tried, and test runners
change them. So this runs in a process of its own, in which all warnings are on.
"""

from __future__ import annotations

import subprocess
import sys
import warnings
from contextlib import suppress
from typing import Any, Final

from burn.device import Device
from burn.dtype import complex64, float32
from burn.errors import UnsupportedOpError
from burn.plugins import registry
from burn.testing.check import Skipped
from burn.testing.checks import run_in_dispatch
from burn.testing.op_samples import SAMPLES
from burn.testing.subject import Call, Subject
from burn.testing.suites.expectations import expect
from burn.testing.suites.suite import DeviceSuite

__all__ = ["SUITES", "warnings_on"]

_silence: Final = DeviceSuite("silence", "float results that are not finite are no reason to warn")


@_silence.check("no op warns")
def no_op_warns(device: Device) -> None:
    """Every op, through Dispatch, on its float samples, in a process where all warnings are on."""
    if registry.entry(device.backend_name).plugin.is_in_process:
        raise Skipped("the backend is registered in this process, and no other one knows it")
    code = f"from {__name__} import warnings_on; print(*warnings_on({device.name!r}), sep='\\n')"
    result = subprocess.run(  # noqa: S603 — this interpreter, and the code above
        [sys.executable, "-W", "always", "-c", code],
        capture_output=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    expect(result.returncode == 0, result.stderr)
    found = result.stdout.split("\n")[:-1]
    lines = [line for line in found if line]
    expect(not lines, "\n".join(["there are warnings:", *lines[:20]]))


def warnings_on(name: str) -> list[str]:
    """Warnings that ops on the samples of a device give rise to, as text."""
    subject = Subject.of(Device(name))
    unfinished = (UnsupportedOpError,) if subject.missing else ()
    found: list[str] = []
    seen: set[str] = set()

    def show(message: Any, category: Any, filename: str, lineno: int, *_: Any) -> None:
        text = f"{category.__name__}: {message} ({filename}:{lineno})"
        if text not in seen:
            seen.add(text)
            found.append(f"{op}: {text}")

    warnings.showwarning = show  # type: ignore[assignment]  # it takes what the other takes
    for op, samples in SAMPLES.items():  # noqa: B007 — `show` tells it
        for one in samples.samples:
            for dtype in (float32, complex64):
                if dtype in subject.dtypes(samples, one):
                    call = Call.of(samples, one, dtype, subject.index_dtype)
                    with suppress(*unfinished):
                        run_in_dispatch(subject, call, call.upload(subject))
    return found


SUITES: Final = [_silence.suite]
