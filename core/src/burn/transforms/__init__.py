"""Transforms of functions: gradients, examples in batches, custom gradients, recomputation."""

from burn.public_calls import has_callers
from burn.transforms.batched import vmap
from burn.transforms.compilation import Compiled, compile
from burn.transforms.control import cond, fori_loop, scan, while_loop
from burn.transforms.custom import custom_vjp
from burn.transforms.derivatives import grad, hessian, jacobian, jvp, value_and_grad, vjp
from burn.transforms.regions import checkpoint
from burn.transforms.shapes import eval_shape

__all__ = [
    "Compiled",
    "checkpoint",
    "compile",
    "cond",
    "custom_vjp",
    "eval_shape",
    "fori_loop",
    "grad",
    "hessian",
    "jacobian",
    "jvp",
    "scan",
    "value_and_grad",
    "vjp",
    "vmap",
    "while_loop",
]

has_callers(__name__)


def __dir__() -> list[str]:
    return __all__
