"""The conformance kit: what the author of a backend runs to know when the backend is done.

Each op has samples and a NumPy reference (`SAMPLES`), gradients are compared with central
differences, and suites of checks (`SUITES`) try what users do with a device: creation, transfers,
errors, random numbers, threads, memory. Three ways lead there::

    burn check cuda                   every device of a backend, with a report by op and dtype
    burn check opencl/gpu:0 --quick --op softmax --dtype float16

    pytest --pyargs burn.testing --burn-device=cuda:0     the same as tests

and from Python:

>>> from burn.testing import run
>>> report = run("cpu", ops=["relu"], dtypes=["float32"], quick=True)
>>> report.conforms, report.rows[0].origin
(True, 'generated')

A check that fails says what was wrong, and prints a program of a few lines that shows it and needs
nothing of the kit. What does not work yet, and is known not to, stands with its reason in the file
``expected_failures.txt`` beside the module of the plugin (`burn.testing._expected`).

A backend that is not finished can be tried too: an op that needs a required op which is not there
counts as unsupported, and the suite ``contract`` says which those are. ``--minimal`` hides all that
a backend has beyond the required ops, so that every op is tried on those. ``--compiled`` compiles
each call as a program.

>>> from burn.testing import Minimal, NumpyBackend, Subject, groups_of, Selection
>>> from burn.device_id import DeviceId
>>> subject = Subject(NumpyBackend(), DeviceId(0))  # a backend that is registered nowhere
>>> for group in groups_of(subject, Selection(ops=("softmax",), suites=("gradients",))):
...     print(group.name)
gradients/softmax/float64

Tests of programs that use burn need `assert_close` alone.

Importing ``burn.testing`` imports nothing: a name is looked up when it is first used. All of them
stand in `burn.testing._namespace`.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any

from burn.public_calls import has_callers

if TYPE_CHECKING:
    from burn.testing._namespace import *  # noqa: F403 — for type checkers; __getattr__ at run time

has_callers(__name__)

if not TYPE_CHECKING:  # a type checker knows the names above, and is to report all others

    def __getattr__(name: str) -> Any:
        if not name.startswith("_") or name == "__all__":
            namespace = importlib.import_module("burn.testing._namespace")
            if name == "__all__":
                return namespace.PUBLIC
            if name in namespace.PUBLIC:
                value = getattr(namespace, name)
                globals()[name] = value
                return value
        raise AttributeError(
            f"module 'burn.testing' has no attribute {name!r}",
            name=name,
            obj=sys.modules[__name__],
        )


def __dir__() -> list[str]:
    return list(importlib.import_module("burn.testing._namespace").PUBLIC)
