"""What pytest is not to import where there is no CuPy: the modules that need it."""

import importlib.util

collect_ignore = [] if importlib.util.find_spec("cupy") else ["src/burn_cuda/runtime.py"]
