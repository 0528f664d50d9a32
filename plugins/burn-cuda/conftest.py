"""What pytest does not import: helpers of tests, and where there is no CuPy what needs it."""

import importlib.util

collect_ignore = ["tests/emulation"]
if not importlib.util.find_spec("cupy"):
    needs_cupy = ("blas", "kernel", "runtime", "streams")
    collect_ignore += [f"src/burn_cuda/{name}.py" for name in needs_cupy]
