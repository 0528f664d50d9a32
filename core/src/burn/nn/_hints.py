"""What is here for names that users of PyTorch, Flax and MLX look for."""

from collections.abc import Mapping
from typing import Final

__all__ = ["HINTS_OF_MODULES", "NAMES"]

NAMES: Final[Mapping[str, str]] = {
    "BatchNorm": "BatchNorm1d, BatchNorm2d and BatchNorm3d say how many axes their input has",
    "Conv": "Conv1d, Conv2d and Conv3d say how many axes their input has",
    "Dense": "It is burn.nn.Linear(in_features, out_features)",
    "EmbeddingBag": "Add up what burn.nn.Embedding returns, with burn.sum or burn.mean",
    "ModuleDict": "A dict of modules is an attribute like any other",
    "ModuleList": "A list of modules is an attribute like any other",
    "MultiheadAttention": "It is burn.nn.MultiHeadAttention; burn.nn.attention.split_attention "
    "renames the weights of PyTorch's",
    "Parameter": "A float tensor that is an attribute of a Module is a parameter",
    "ParameterDict": "A dict of tensors is an attribute like any other",
    "ParameterList": "A list of tensors is an attribute like any other",
    "Upsample": "It is burn.nn.Interpolate",
    "parallel": "Nothing here spreads a module over devices yet",
    "qat": "It is burn.nn.prepare_qat(model, scheme), and model.quantize() afterwards",
    "quantized": "Call model.quantize(scheme): the layers stay what they are",
    "utils": "Clip with burn.optim.clip_by_global_norm, or clip_norm= of an optimizer; "
    "burn.nn.WeightNorm is a weight norm",
}
"""Names of the packages ``torch.nn``, ``flax.nnx`` and ``mlx.nn``."""

HINTS_OF_MODULES: Final[Mapping[str, str]] = {
    "apply": "Call module.map(function), with function(path, parameter)",
    "bfloat16": 'Call module.astype("bfloat16"), or module.set_precision',
    "children": "Call module.named_modules(), or read the attributes",
    "cpu": 'Call module.to("cpu")',
    "cuda": 'Call module.to("cuda"), or module.to(burn.Device("cuda").autodiff()) to train',
    "device": "Read the device of one of its tensors: module.parameters()[0].device",
    "double": 'Call module.astype("float64")',
    "float": 'Call module.astype("float32")',
    "half": 'Call module.astype("float16"), or module.set_precision',
    "named_children": "Call module.named_modules(), or read the attributes",
    "qconfig": "Call burn.nn.prepare_qat(model, scheme), or model.quantize(scheme)",
    "register_buffer": 'Set an attribute, and name it in the class: buffers = ("name",)',
    "register_module": "Set an attribute",
    "register_parameter": "Set an attribute: float tensors are parameters",
    "requires_grad_": "Call module.freeze() and module.unfreeze()",
    "zero_grad": "loss.backward() returns the gradients; none are kept that would add up",
}
"""Methods of ``torch.nn.Module``."""
