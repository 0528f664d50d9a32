"""Transforms of functions: gradients, examples in batches, custom gradients, recomputation."""

from burn.transforms.batched import vmap
from burn.transforms.custom import custom_vjp
from burn.transforms.derivatives import grad, hessian, jacobian, jvp, value_and_grad, vjp
from burn.transforms.regions import checkpoint
from burn.transforms.shapes import eval_shape

__all__ = [
    "checkpoint",
    "custom_vjp",
    "eval_shape",
    "grad",
    "hessian",
    "jacobian",
    "jvp",
    "value_and_grad",
    "vjp",
    "vmap",
]


def __dir__() -> list[str]:
    return __all__
