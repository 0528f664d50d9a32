"""Small models of the library transformers with random weights, and what they compute.

``python transformers_reference.py packages target.pickle files``: the first is a folder that pip
filled. The environment's own torch and NumPy come before those in it. The models are saved in the
folder ``files``, each in one file and in shards. With a fourth argument, a folder of models that
were saved, the target gets what these compute instead.
"""

import pickle
import sys
from pathlib import Path

import torch


def models():
    """Each model with its inputs."""
    import transformers as library

    tokens = {"vocab_size": 61, "bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
    layers = {"hidden_size": 24, "num_hidden_layers": 3, "intermediate_size": 40}
    text = {"input_ids": torch.randint(61, (3, 9), generator=torch.Generator().manual_seed(1))}
    segments = {
        **text,
        "token_type_ids": torch.tensor([[0] * 4 + [1] * 5] * 3),
        "attention_mask": torch.tensor([[1] * 9, [1] * 5 + [0] * 4, [1] * 8 + [0]]),
    }
    generator = torch.Generator().manual_seed(2)
    images = {"pixel_values": torch.randn(3, 3, 24, 24, generator=generator)}

    config = library.GPT2Config(n_positions=32, n_embd=24, n_layer=3, n_head=4, **tokens)
    yield "gpt2", library.GPT2LMHeadModel(config), text
    config = library.LlamaConfig(
        hidden_size=32,
        intermediate_size=56,
        num_hidden_layers=3,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=32,
        **tokens,
    )
    yield "llama", library.LlamaForCausalLM(config), text
    config = library.BertConfig(
        **layers, num_attention_heads=4, vocab_size=61, max_position_embeddings=32
    )
    yield "bert", library.BertForMaskedLM(config), segments
    config = library.ViTConfig(
        **layers, num_attention_heads=4, image_size=24, patch_size=8, num_labels=7
    )
    yield "vit", library.ViTForImageClassification(config), images
    for kind, sizes in (("basic", [8, 12, 16]), ("bottleneck", [16, 24, 32])):
        config = library.ResNetConfig(
            embedding_size=8, hidden_sizes=sizes, depths=[2, 1, 2], layer_type=kind, num_labels=7
        )
        yield f"resnet-{kind}", library.ResNetForImageClassification(config), images


def described(model, inputs, folder):
    """State, inputs, logits in float32 and float64, and tokens that follow if it is causal."""
    generator = torch.Generator().manual_seed(3)
    noise = 0.3 if model.can_generate() else 0.1  # less, and the same tokens come again and again
    for name, tensor in model.state_dict().items():  # also zeros, ones and running statistics
        if tensor.is_floating_point():
            tensor.add_(noise * torch.randn(tensor.shape, generator=generator))
            if name.endswith("running_var"):
                tensor.abs_().add_(0.5)
    model.eval()
    model.save_pretrained(folder / "whole")
    model.save_pretrained(folder / "shards", max_shard_size="20KB")
    result = {
        "state": {name: tensor.numpy().copy() for name, tensor in model.state_dict().items()},
        "inputs": {name: tensor.numpy() for name, tensor in inputs.items()},
        "float32": model(**inputs).logits.numpy(),
    }
    if model.can_generate():
        found = model.generate(**inputs, max_new_tokens=20, do_sample=False)
        result["generated"] = found[:, inputs["input_ids"].shape[1] :].numpy()
    doubles = {
        name: tensor.double() if tensor.is_floating_point() else tensor
        for name, tensor in inputs.items()
    }
    result["float64"] = model.double()(**doubles).logits.numpy()
    return result


def read(name, model, inputs, folder):
    """The logits of a model whose weights are in a folder, to which its configuration is added."""
    model.config.save_pretrained(folder / name)
    if model.can_generate():
        model.generation_config.save_pretrained(folder / name)
    found = type(model).from_pretrained(folder / name)
    return found.eval()(**inputs).logits.numpy()


if __name__ == "__main__":
    packages, target, files, *saved = sys.argv[1:]
    sys.path.append(packages)
    torch.manual_seed(0)
    with torch.no_grad():
        if saved:
            found = {name: read(name, *rest, Path(saved[0])) for name, *rest in models()}
        else:
            found = {name: described(*rest, Path(files, name)) for name, *rest in models()}
    Path(target).write_bytes(pickle.dumps(found))
