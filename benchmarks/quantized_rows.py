"""Products of few rows with quantized weights, against those of burn-cpu with float32."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import burn
from burn.nn import functional as F
from burn.quantization import QuantScheme, QuantValue, ScaleDType
from harness import Case

SIDE = 4096

WEIGHTS = 4
"""Number of weights that take turns, so that caches do not hold them: 256 MiB of float32."""

ROW = (1, -1)
SCHEMES = {
    "int8": QuantScheme(QuantValue.Q8S).per_block(ROW, ScaleDType.F32),
    "int8 in blocks of 32": QuantScheme(QuantValue.Q8S).per_block((1, 32), ScaleDType.F16),
    "int4 in blocks of 32": QuantScheme(QuantValue.Q4S).per_block((1, 32), ScaleDType.F16),
}
BUDGETS = {("int8", 1): 0.7}


def quantized_rows() -> Iterator[Case]:
    """A weight of 4096 x 4096 times 1 and 8 rows in float32, on the CPU and on OpenCL.

    OpenCL's are compared with the CPU's, whose float32 products are faster than those on PoCL.
    """
    cpu = burn.Device("cpu")
    floats = [burn.random.normal((SIDE, SIDE), device=cpu) for _ in range(WEIGHTS)]
    for name in ("cpu", "opencl"):
        if name == "opencl" and not burn.Device.enumerate("opencl"):
            continue
        device = burn.Device(name)
        for rows in (1, 8):
            x = burn.random.normal((rows, SIDE), device=cpu)
            for value, scheme in SCHEMES.items():
                quantized = [number.quantize_dynamic(scheme).to_device(device) for number in floats]
                yield Case(
                    f"{value}, {rows} rows, {name}",
                    _in_turns(x.to_device(device), quantized),
                    _in_turns(x, floats),
                    "float32, cpu",
                    BUDGETS.get((value, rows)),
                    device.sync,
                )


def _in_turns(x: burn.Tensor, weights: list[burn.Tensor]) -> Callable[[], object]:
    """What multiplies by one weight after the other."""
    weight = itertools.cycle(weights)
    return lambda: F.linear(x, next(weight), transposed=True)
