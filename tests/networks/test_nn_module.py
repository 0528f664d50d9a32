"""Modules: what is a parameter, where leaves are made, states, copies, and transforms."""

import concurrent.futures
import copy
import math
import os
import pickle
import threading
import unittest.mock
import warnings
from collections import OrderedDict

import numpy as np
import pytest
import torch

import burn
from burn import nn
from burn.nn import functional as F

PLAIN = burn.Device("cpu")
AUTODIFF = PLAIN.autodiff()


class Block(nn.Module):
    def __init__(self, width, *, device=None):
        self.width = width
        self.linear = nn.Linear(width, width, bias=False, device=device)

    def forward(self, x):
        return x + F.relu(self.linear(x))


class Net(nn.Module):
    """Parameters in attributes, lists and dicts; a buffer, a mask, a table of integers."""

    buffers = ("mean",)
    transient = ("mask",)

    def __init__(self, width=3, *, device=None):
        self.width = width
        self.first = nn.Linear(2, width, device=device)
        self.blocks = [Block(width, device=device) for _ in range(2)]
        self.heads = {"policy": nn.Linear(width, 2, device=device)}
        self.scales = (burn.ones(width, device=device), None, "text")
        self.mean = burn.zeros(width, device=device)
        self.mask = burn.ones(width, device=device)
        self.table = burn.asarray([3, 4], device=device)

    def forward(self, x):
        x = self.first(x) * self.mask
        if self.training:
            self.mean.assign((0.9 * self.mean + 0.1 * x.mean(axis=0)).detach())
        for block in self.blocks:
            x = block(x)
        return self.heads["policy"](x * self.scales[0])


class Tied(nn.Module):
    def __init__(self, device):
        self.embed = nn.Linear(4, 3, bias=False, device=device)
        self.head = nn.Linear(4, 3, bias=False, device=device)
        self.head.weight = self.embed.weight

    def forward(self, x):
        return self.head(x) + self.embed(x)


PATHS = [
    "first.weight",
    "first.bias",
    "blocks.0.linear.weight",
    "blocks.1.linear.weight",
    "heads.policy.weight",
    "heads.policy.bias",
    "scales.0",
]


def example(device=PLAIN):
    return burn.asarray([[1.0, -1.0], [0.5, 2.0], [0.0, 1.0]], device=device)


def loss_of(model, x):
    return (model(x) ** 2).mean()


@pytest.mark.parametrize("device", [PLAIN, AUTODIFF])
def test_float_tensors_are_parameters_and_all_others_buffers(device):
    net = Net(device=device)
    assert [path for path, _ in net.named_parameters()] == PATHS
    assert [path for path, _ in net.named_buffers()] == ["mean", "mask", "table"]
    assert list(net.state_dict()) == [*PATHS, "mean", "table"]
    assert net.num_parameters == sum(math.prod(x.shape) for x in net.parameters()) == 9 + 18 + 8 + 3
    names = ["", "first", "blocks.0", "blocks.0.linear", "blocks.1", "blocks.1.linear"]
    assert [path for path, _ in net.named_modules()] == [*names, "heads.policy"]
    assert net.modules()[0] is net


def test_leaves_are_made_at_the_first_use_on_an_autodiff_device():
    net = Net(device=AUTODIFF)
    net.first.weight[0, 0] = 5.0  # no leaf yet
    tensors = [net.first.weight, net.scales[0], net.heads["policy"].bias]
    assert not any(x.is_require_grad for x in tensors)
    loss = loss_of(net, example())
    assert all(x.is_require_grad for x in tensors)
    assert not net.mean.is_tracked
    gradients = loss.backward()
    assert set(map(id, gradients)) == set(map(id, net.parameters()))
    assert net.first.weight is tensors[0]
    assert float(net.first.weight[0, 0]) == 5.0


def test_a_module_infers_on_a_plain_device_and_trains_on_an_autodiff_device():
    net = Net(device=PLAIN)
    assert not net.training
    assert not net(example()).is_tracked
    assert net.mean.tolist() == [0.0] * 3
    net.to(AUTODIFF)
    assert net.training
    net(example())
    assert net.mean.tolist() != [0.0] * 3
    before = net.mean.tolist()
    assert not net.eval().training
    assert net(example()).is_tracked
    assert net.mean.tolist() == before
    assert net.train().training
    assert not net.to(PLAIN).training


def test_parameters_that_come_later_become_leaves():
    net = Net(device=AUTODIFF)
    net(example())
    net.blocks.append(Block(3, device=AUTODIFF))
    net.blocks[0].linear = nn.Linear(3, 3, device=AUTODIFF)
    net.extra = burn.ones(2, device=AUTODIFF)
    gradients = loss_of(net, example()).backward()
    assert net.blocks[2].linear.weight in gradients
    assert net.blocks[0].linear.bias in gradients
    assert net.extra.is_require_grad


def test_a_shared_tensor_is_one_parameter_with_one_gradient():
    model = Tied(AUTODIFF)
    assert [path for path, _ in model.named_parameters()] == ["embed.weight"]
    assert list(model.state_dict()) == ["embed.weight", "head.weight"]
    x = burn.ones((1, 4), device="cpu")
    gradients = model(x).sum().backward()
    assert len(gradients) == 1
    assert gradients[model.embed.weight].tolist() == [[2.0] * 4] * 3
    for copied in (copy.deepcopy(model), pickle.loads(pickle.dumps(model)), model.to(PLAIN)):
        assert copied.head.weight is copied.embed.weight
    doubled = burn.tree.map(lambda p: 2 * p, model)
    assert doubled.head.weight is doubled.embed.weight


def test_a_module_at_two_paths_and_in_a_cycle_is_visited_once():
    class Node(nn.Module):
        def __init__(self):
            self.layer = self.again = nn.Linear(2, 2, device=PLAIN)
            self.root = self
            self.loop = [self]
            self.loop.append(self.loop)

    node = Node()
    assert [path for path, _ in node.named_parameters()] == ["layer.weight", "layer.bias"]
    assert "Node(...)" in repr(node)
    copied = burn.tree.map(lambda p: p + 1, node)
    assert copied.root is copied
    assert copied.again is copied.layer


def test_a_class_of_modules_is_an_attribute_like_any_other():
    class Normed(nn.Module):
        def __init__(self, norm=nn.LayerNorm):
            self.norm, self.kinds = norm, [nn.ReLU]
            self.layer = norm(2, device=AUTODIFF)

        def forward(self, x):
            return self.layer(x)

    net = Normed()
    assert len(net.modules()) == 2
    assert net.set_precision(nn.Precision("bfloat16"))(example()).is_tracked
    assert copy.deepcopy(net).norm is burn.grad(lambda net: net(example()).sum())(net).norm
    assert f"norm={nn.RMSNorm!r}" in repr(Normed(nn.RMSNorm))


def test_buffers_of_base_classes_stay_buffers():
    class More(Net):
        buffers = ("count",)

        def __init__(self):
            super().__init__(device=PLAIN)
            self.count = burn.zeros(1, device=PLAIN)

    assert More.buffers == ("mean", "count")
    assert [path for path, _ in More().named_parameters()] == PATHS


def test_a_view_as_a_parameter_is_independent_once_it_is_a_leaf():
    table = burn.ones((2, 3), device=AUTODIFF)

    class Model(nn.Module):
        def __init__(self):
            self.weight = table.T

        def forward(self, x):
            return x @ self.weight

    model = Model()
    gradients = model(burn.ones((1, 3), device="cpu")).sum().backward()
    assert gradients[model.weight].shape == (3, 2)
    table[0, 0] = 7.0
    assert model.weight.tolist() == [[1.0, 1.0]] * 3


def test_a_computed_tensor_is_no_parameter():
    net = Net(device=AUTODIFF)
    net(example())
    net.hidden = net.first.weight * 2
    with pytest.raises(burn.AutodiffError, match="hidden was computed") as caught:
        net.parameters()
    assert 'buffers = ("hidden",)' in str(caught.value)


def test_states_load_from_this_library_numpy_and_torch():
    net, other = Net(device=AUTODIFF), Net(device=PLAIN)
    net(example())
    state = net.state_dict()
    assert not any(x.is_tracked for x in state.values())
    assert {x.device for x in state.values()} == {PLAIN}
    weight = other.first.weight
    assert not other.load_state_dict(state)
    assert other.first.weight is weight
    other.eval(), net.eval()
    assert other(example()).tolist() == net(example()).tolist()
    arrays = {path: np.array(x.tolist()) for path, x in state.items()}
    tensors = {path: torch.tensor(x.tolist(), dtype=torch.float64) for path, x in state.items()}
    for given in (arrays, tensors):
        third = Net(device=AUTODIFF)
        third.load_state_dict(given)
        assert third.first.weight.dtype is burn.float32
        assert third.eval()(example()).tolist() == net(example()).tolist()
        assert third.first.weight.is_require_grad
    net.first.weight.assign(net.first.weight.detach() * 0)
    assert state["first.weight"].tolist() == weight.tolist()  # a state does not change


def test_the_pytorch_layout_of_linear_loads_unchanged():
    theirs = torch.nn.Sequential(torch.nn.Linear(3, 5), torch.nn.ReLU(), torch.nn.Linear(5, 2))
    ours = nn.Sequential(nn.Linear(3, 5, device=PLAIN), F.relu, nn.Linear(5, 2, device=PLAIN))
    ours.load_state_dict(theirs.state_dict())
    x = np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3)
    expected = theirs(torch.from_numpy(x)).detach().numpy()
    burn.testing.assert_close(ours(burn.asarray(x, device=PLAIN)), expected)


def test_a_state_that_does_not_fit_is_refused_whole():
    net = Net(device=PLAIN)
    state = net.state_dict()
    before = {path: x.tolist() for path, x in state.items()}
    wrong = {path: x + 1 for path, x in state.items() if path != "mean"}
    wrong["first.bias"] = burn.ones(7, device=PLAIN)
    wrong["firts.bias"] = burn.ones(3, device=PLAIN)
    with pytest.raises(burn.ArgumentError) as caught:
        net.load_state_dict(wrong)
    for part in (
        "missing: mean",
        "unexpected: firts.bias",
        "first.bias has shape (7,) in the state and (3,) in the module",
    ):
        assert part in str(caught.value)
    assert {path: x.tolist() for path, x in net.state_dict().items()} == before
    report = net.load_state_dict(wrong, strict=False)
    assert (report.missing, report.unexpected) == (["mean"], ["firts.bias"])
    assert report.mismatched == {"first.bias": ((3,), (7,))}
    assert net.first.weight.tolist() != before["first.weight"]
    assert net.first.bias.tolist() == before["first.bias"]
    with pytest.raises(burn.OperandTypeError, match="state_dict"):
        net.load_state_dict([1, 2])
    with pytest.raises(burn.DTypeError, match="table has dtype"):
        net.load_state_dict({"table": burn.asarray([1.5, 2.0], device=PLAIN)}, strict=False)
    with pytest.raises(burn.OperandTypeError, match="table is an object"):
        net.load_state_dict({"table": Shaped()}, strict=False)


class Shaped:
    shape = (2,)


def test_tensors_stay_the_same_objects_when_a_module_moves():
    net = Net(device=AUTODIFF)
    tensors = [*net.parameters(), net.mean, net.table]
    for device in ("torch/cpu", burn.Device("torch/cpu").autodiff(), AUTODIFF, "cpu"):
        net.to(device)
        assert all(
            item is other
            for item, other in zip([*net.parameters(), net.mean, net.table], tensors, strict=True)
        )
        assert {str(x.device) for x in tensors} == {str(burn.Device(device))}
        assert all(x.is_require_grad is burn.Device(device).is_autodiff for x in net.parameters())
    net.astype("float64")
    assert {x.dtype for x in tensors} == {burn.float64, net.table.dtype}
    assert not net.table.dtype.is_float
    with pytest.raises(burn.DTypeError, match="float dtype"):
        net.astype("int32")


def test_freezing_keeps_parameters_from_training():
    net = Net(device=AUTODIFF)
    weight = net.first.weight
    net.freeze("first.*", "scales.?")
    gradients = loss_of(net, example()).backward()
    assert len(gradients) == 4
    assert weight not in gradients
    assert len(net.parameters()) == 7
    assert net.num_parameters == 38
    assert "first=Linear(2, 3),  # frozen" in repr(net)
    copied = pickle.loads(pickle.dumps(copy.deepcopy(net)))
    assert len(loss_of(copied, example()).backward()) == 4
    assert not net.to("torch/cpu").to(AUTODIFF).first.weight.is_require_grad
    net.unfreeze("first.weight")
    assert weight in loss_of(net, example()).backward()
    assert len(loss_of(net.unfreeze(), example()).backward()) == 7
    with pytest.raises(burn.ArgumentError, match=r"no parameter is called 'frist.\*'") as caught:
        net.freeze("frist.*")
    assert "first.weight" in str(caught.value)


def test_map_and_visit_go_over_parameters():
    net = Net(device=AUTODIFF)
    net(example())
    tensors = net.parameters()
    assert net.map(lambda path, x: x * 0 if path.endswith("bias") else x + 1) is net
    assert net.first.bias.tolist() == [0.0] * 3
    assert all(item is other for item, other in zip(net.parameters(), tensors, strict=True))
    assert all(x.is_require_grad for x in tensors)
    seen = []
    net.visit(lambda path, x: seen.append((path, x.shape)))
    assert [path for path, _ in seen] == PATHS


def test_copies_are_independent():
    net = Net(device=AUTODIFF)
    net(example())
    for copied in (copy.deepcopy(net), pickle.loads(pickle.dumps(net))):
        assert copied.first.weight is not net.first.weight
        assert copied.first.weight.is_require_grad
        assert copied.training
        assert copied.eval()(example()).tolist() == net.eval()(example()).tolist()
        copied.first.weight.assign(copied.first.weight.detach() * 0)
        assert net.first.weight.tolist() != copied.first.weight.tolist()
        net.train()


def test_grad_of_a_function_of_a_module_is_a_module():
    net = Net(device=PLAIN)
    value, gradient = burn.value_and_grad(loss_of)(net, example())
    assert isinstance(gradient, Net)
    assert net.mean.tolist() != [0.0] * 3  # statistics of the call, which trains
    assert gradient.mean is net.mean
    trained = copy.deepcopy(net).to(AUTODIFF)
    trained.mean.assign(burn.zeros(3, device="cpu"))
    loss = loss_of(trained, example())
    gradients = loss.backward()
    assert float(loss) == float(value)
    for (path, tensor), x in zip(gradient.named_parameters(), trained.parameters(), strict=True):
        assert tensor.tolist() == gradients[x].tolist(), path
    moved = burn.tree.map(lambda p, g: p - 0.1 * g, net, gradient)
    assert float(loss_of(moved, example())) < float(value)
    assert [p.is_tracked for p in net.parameters()] == [False] * 7


def test_a_program_takes_and_returns_modules():
    net = Net(device=PLAIN)

    def step(net, x):
        gradients = burn.grad(loss_of)(net, x)
        return burn.tree.map(lambda p, gradient: p - 0.1 * gradient, net, gradients)

    program = burn.ir.trace(step, net, example())
    found, expected = (
        program(program(net, example()), example()),
        step(step(net, example()), example()),
    )
    assert [path for path, _ in found.named_parameters()] == PATHS
    for x, y in zip(found.parameters(), expected.parameters(), strict=True):
        np.testing.assert_array_equal(x.numpy(), y.numpy())


def test_a_program_refuses_modules_whose_constants_are_others():
    net = Net(device=PLAIN)
    program = burn.ir.trace(lambda net, x: net(x), net, example())
    updated = burn.tree.map(lambda x: x * 2, net)
    burn.testing.assert_close(program(updated, example()), updated(example()))
    with pytest.raises(burn.ArgumentError, match="mean of a Net is another tensor"):
        program(copy.deepcopy(net), example())
    updated.width = 4
    with pytest.raises(burn.ArgumentError, match="width of a Net is 4 where it was 3 when"):
        program(updated, example())
    updated.width, updated.scales = 3, (*net.scales[:2], "other")
    with pytest.raises(burn.ArgumentError, match=r"scales\.2 of a Net is 'other'"):
        program(updated, example())
    for change in (net.eval, lambda: net.train().first.set_precision(nn.Precision("float64"))):
        change()
        with pytest.raises(burn.ArgumentError, match="was called after it was traced"):
            program(net, example())


def test_frozen_parameters_are_constants_to_grad():
    net = Net(device=PLAIN).freeze("first.*")
    gradient = burn.grad(loss_of)(net, example())
    assert len(burn.tree.leaves(gradient)) == 5
    assert gradient.first.weight is net.first.weight


def test_vmap_maps_over_stacked_modules():
    nets = [Net(device=PLAIN).eval() for _ in range(3)]
    stacked = burn.tree.map(lambda *ps: burn.stack(ps), *nets)
    outputs = burn.vmap(lambda net, x: net(x), in_axes=(0, None))(stacked, example())
    for output, net in zip(outputs, nets, strict=True):
        burn.testing.assert_close(output, net(example()))


def test_a_function_of_leaves_may_give_none():
    net = burn.tree.map(lambda _: None, Net(device=PLAIN))
    assert net.first.weight is None
    assert net.scales[0] is None


def test_modules_of_other_paths_are_other_containers():
    net, other = Net(device=PLAIN), Net(device=PLAIN)
    other.blocks.append(Block(3, device=PLAIN))
    with pytest.raises(burn.OperandTypeError, match="containers must agree"):
        burn.tree.map(lambda x, y: x, net, other)


def test_representations_read_like_code():
    net = Net(device=PLAIN)
    assert repr(net.first) == "Linear(2, 3)"
    assert repr(Block(3, device=PLAIN)) == "Block(3, linear=Linear(3, 3, bias=False))"
    assert repr(nn.Sequential(nn.Linear(2, 3, device=PLAIN))) == "Sequential(Linear(2, 3))"
    assert repr(net).splitlines() == [
        "Net(",
        "    first=Linear(2, 3),",
        "    blocks=[",
        "        Block(3, linear=Linear(3, 3, bias=False)),",
        "        Block(3, linear=Linear(3, 3, bias=False)),",
        "    ],",
        "    heads={'policy': Linear(3, 2)},",
        ")",
    ]


def test_sequential_is_a_sequence_of_modules_and_functions():
    net = nn.Sequential(nn.Linear(2, 3, device=PLAIN), F.relu, nn.Linear(3, 2, device=PLAIN))
    x = example()
    assert len(net) == 3
    assert net[1] is F.relu
    assert net(x).tolist() == net[2](F.relu(net[0](x))).tolist()
    assert net[:2](x).tolist() == F.relu(net[0](x)).tolist()
    assert [path for path, _ in net[1:].named_parameters()] == ["1.weight", "1.bias"]
    named = nn.Sequential(OrderedDict(encoder=nn.Linear(2, 3, device=PLAIN)))
    assert [path for path, _ in named.named_parameters()] == ["encoder.weight", "encoder.bias"]
    assert [type(item).__name__ for item in net] == ["Linear", "function", "Linear"]
    with pytest.raises(burn.OperandTypeError, match="Sequential"):
        nn.Sequential([nn.Linear(2, 3, device=PLAIN)])


def test_errors_of_a_call_name_the_layer():
    net = Net(device=PLAIN)
    with pytest.raises(burn.ShapeError) as caught:
        net(burn.ones((2, 5), device=PLAIN))
    assert caught.value.__notes__ == ["in Linear(2, 3)"]


def test_a_class_without_forward_or_with_call_is_refused():
    class Empty(nn.Module):
        pass

    with pytest.raises(burn.OperandTypeError, match="Empty has no method forward"):
        Empty()(1)
    with pytest.raises(burn.OperandTypeError, match="method forward"):

        class Called(nn.Module):
            def __call__(self, x):
                return x

    with pytest.raises(burn.OperandTypeError, match="is a string"):

        class Text(nn.Module):
            buffers = "mean"


def test_threads_that_begin_together_make_one_leaf_of_each_parameter():
    for _ in range(20):
        net = Net(device=AUTODIFF)
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            losses = list(pool.map(lambda _, net=net: loss_of(net.eval(), example()), range(8)))
        assert all(net.first.weight in loss.backward() for loss in losses)


class Noisy(nn.Module):
    """Dropout of an input without autodiff, after other attributes were set and modules made."""

    def __init__(self, device):
        self.drop = nn.Sequential(nn.Dropout(0.5))
        self.scale = burn.ones((), device=device)

    def forward(self, x):
        self.seen = [x.shape]
        nn.Linear(1, 1, device=AUTODIFF)
        return self.drop(x) * self.scale


@pytest.mark.parametrize("device", [PLAIN, AUTODIFF])
def test_a_layer_without_tensors_trains_as_the_model_that_it_is_a_part_of(device):
    net, x = Noisy(device), burn.ones(100, device=PLAIN)
    assert (0.0 in net(x).tolist()) == (device is AUTODIFF)
    assert (0.0 in net.drop(x).tolist()) == (device is AUTODIFF)
    assert 0.0 not in net.to(PLAIN)(x).tolist()
    assert 0.0 in net.to(AUTODIFF)(x).tolist()
    drops = []

    def loss(net):
        drops.append(0.0 in net.drop(x).tolist())
        return net.scale

    burn.grad(loss)(net)
    assert drops == [True]


def test_only_attributes_with_modules_and_new_parameters_prepare_a_model_again(monkeypatch):
    net = Net(device=AUTODIFF)
    net(example())
    walks = []
    monkeypatch.setattr(burn.nn.module, "prepare", lambda module: walks.append(module))
    for name, value in (("seen", [1, "text"]), ("mean", net.mean), ("kept", (net.scales[0],))):
        setattr(net, name, value)
        net(example())
    assert not walks


def test_a_process_made_while_parameters_become_leaves_can_use_modules():
    net = Net(device=AUTODIFF)
    with burn.nn._preparation._lock, warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of a fork in a process with threads
        pid = os.fork()
    if not pid:
        thread = threading.Thread(target=lambda: os._exit(len(net.parameters()) != len(PATHS)))
        thread.start()
        thread.join(10.0)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_a_summary_has_shapes_parameters_and_operations():
    net = nn.Sequential(
        nn.Linear(784, 512, device=AUTODIFF), F.relu, nn.Linear(512, 10, device=AUTODIFF)
    )
    summary = net.summary(burn.ir.TensorSpec((128, 784), burn.float32, "cpu"))
    root, first, last = summary.rows
    assert [row.path for row in summary.rows] == ["", "0", "2"]
    assert first.outputs == ("float32[128, 512]",)
    assert first.parameters == 784 * 512 + 512
    assert last.flops == 2 * 128 * 512 * 10 + 128 * 10
    assert root.flops == first.flops + last.flops + 128 * 512
    assert root.parameters == net.num_parameters
    lines = str(summary).splitlines()
    assert lines[0].split() == ["module", "output", "parameters", "calls", "FLOP", "bytes"]
    assert lines[2].split()[:2] == ["0:", "Linear(784,"]
    assert "401,920" in lines[2]


def test_summaries_of_several_threads_count_the_calls_of_their_own():
    meet = threading.Barrier(2, timeout=20)

    class Meeting(nn.Module):
        def __init__(self):
            self.layer = nn.Linear(2, 3, device=PLAIN)

        def forward(self, x):
            meet.wait()
            result = self.layer(x)
            meet.wait()
            return result

    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        made = [pool.submit(Meeting().summary, example()) for _ in range(2)]
        assert [[row.calls for row in item.result().rows] for item in made] == [[1, 1]] * 2


def test_precision_computes_in_another_dtype_than_that_of_the_parameters():
    class Recording(nn.Module):
        def __init__(self, device):
            self.layer = nn.Linear(2, 3, device=device)
            self.calls = 0

        def forward(self, x, *, options):
            self.calls += 1
            self.seen = x.dtype, options["bias"].dtype, options["index"].dtype
            return {"output": self.layer(x) + options["bias"]}

    model = Recording(AUTODIFF).set_precision(nn.Precision("bfloat16"))
    options = {"bias": burn.ones(3, device="cpu"), "index": burn.asarray([1], device="cpu")}
    for calls in (1, 2):
        output = model(example(), options=options)["output"]
        assert model.calls == calls
    assert model.seen == (burn.bfloat16, burn.bfloat16, options["index"].dtype)
    assert output.dtype is burn.float32
    gradients = (output**2).mean().backward()
    assert len(gradients) == 2
    assert gradients[model.layer.weight].dtype is burn.float32
    exact = F.linear(
        example(), model.layer.weight.inner(), model.layer.bias.inner(), transposed=True
    )
    burn.testing.assert_close(output.inner(), exact + 1, rtol=2e-2, atol=2e-2)
    assert not bool(burn.all(output.inner() == exact + 1))
    assert output.inner().astype("bfloat16").astype("float32").tolist() == output.tolist()


def test_a_module_with_its_own_precision_has_the_parameters_that_it_shares_in_full():
    net = Tied(AUTODIFF).set_precision(nn.Precision("bfloat16"))
    net.head.set_precision(nn.Precision("float32"))
    one = burn.eye(4, device=PLAIN)
    expected = burn.linalg.matrix_transpose(net.embed.weight)
    burn.testing.assert_close(net(one) - net.embed(one).astype("bfloat16"), expected, atol=0)


def test_calls_in_another_precision_add_to_the_lists_of_a_module():
    class Logging(nn.Module):
        def __init__(self):
            self.layer = nn.Linear(2, 3, device=PLAIN)
            self.shapes = []

        def forward(self, x):
            self.shapes.append(x.shape)
            return self.layer(x)

    model = Logging().set_precision(nn.Precision("bfloat16"))
    model(example())
    model(example()[:1])
    assert model.shapes == [(3, 2), (1, 2)]


def test_a_module_below_may_have_its_own_precision():
    net = nn.Sequential(nn.Linear(2, 3, device=AUTODIFF), nn.Linear(3, 2, device=AUTODIFF))
    net[1].set_precision(nn.Precision("float32"))
    net.set_precision(nn.Precision("float16", output=None))
    assert net(example()).dtype is burn.float32
    net[1].set_precision(nn.Precision("float32", output="float64"))
    assert net(example()).dtype is burn.float64
    assert net[0](example()).dtype is burn.float32  # a part alone has no precision
    net.set_precision(None)[1].set_precision(None)
    assert net(example()).dtype is burn.float32
    net.set_precision(nn.Precision("float16", parameters="float64"))
    assert {x.dtype for x in net.parameters()} == {burn.float64}
    with pytest.raises(burn.DTypeError, match="compute is a float dtype"):
        nn.Precision("int32")
    assert repr(nn.Precision("bfloat16")) == (
        "Precision(compute='bfloat16', parameters='float32', output='float32')"
    )


class Scales(nn.Module):
    def __init__(self, device=AUTODIFF):
        self.scales = [burn.ones(2, device=device)]
        self.by_name = {"a": {"b": burn.ones(2, device=device)}}

    def forward(self, x):
        for scale in [*self.scales, *self.by_name["a"].values()]:
            x = x * scale
        return x


def test_tensors_that_are_put_into_containers_later_become_leaves():
    model = Scales()
    model(example())
    model.scales.append(burn.ones(2, device=AUTODIFF))
    model.by_name["a"]["c"] = burn.ones(2, device=AUTODIFF)
    gradients = model(example()).sum().backward()
    assert len(gradients) == 4
    model.scales[0] = model.by_name["a"]["b"] = burn.ones(2, device=AUTODIFF)
    gradients = model(example()).sum().backward()
    assert model.scales[0] in gradients
    assert model.scales[0] is model.by_name["a"]["b"]
    assert len(pickle.loads(pickle.dumps(model))(example()).sum().backward()) == 3


def test_unfrozen_parameters_are_leaves_at_once():
    net = Net(device=AUTODIFF)
    net.freeze()
    net(example())
    net.unfreeze()
    penalty = (net.first.weight**2).sum()
    gradients = (penalty + loss_of(net, example())).backward()
    without = loss_of(net, example()).backward()[net.first.weight]
    burn.testing.assert_close(
        gradients[net.first.weight], without + 2 * net.first.weight.inner(), rtol=1e-5
    )


@pytest.mark.parametrize("is_called_before", [True, False])
def test_a_step_inside_of_a_step_has_a_gradient_for_the_module(is_called_before):
    net = nn.Linear(2, 1, device=AUTODIFF)
    if is_called_before:
        net(example())

    def adapted(net):
        gradient = burn.grad(loss_of)(net, example())
        return burn.tree.map(lambda p, g: p - 0.1 * g, net, gradient)

    gradients = loss_of(adapted(net), example()).backward()
    assert set(map(id, gradients)) == set(map(id, net.parameters()))
    plain = copy.deepcopy(net).to(PLAIN)
    first = burn.grad(
        lambda net: loss_of(
            burn.tree.map(lambda p, g: p - 0.1 * g, net, burn.grad(loss_of)(net, example())),
            example(),
        )
    )(plain)
    for parameter, x in zip(first.parameters(), net.parameters(), strict=True):
        burn.testing.assert_close(gradients[x], parameter)


def test_stacks_of_modules_that_were_never_called_are_tracked():
    nets = [nn.Linear(2, 1, device=AUTODIFF) for _ in range(2)]
    stacked = burn.tree.map(lambda *ps: burn.stack(ps), *nets)
    loss = burn.vmap(lambda net, x: net(x), in_axes=(0, None))(stacked, example()).sum()
    gradients = loss.backward()
    assert nets[0].weight in gradients
    assert nets[1].bias in gradients


def test_gradients_that_are_a_module_stay_what_they_are():
    net = nn.Linear(2, 1, device=AUTODIFF)
    gradient = burn.grad(loss_of)(net, example())
    burn.tree.leaves(gradient)
    assert not gradient.weight.is_require_grad


def test_buffers_are_named_by_the_class_and_exist():
    class Typo(nn.Module):
        buffers = ("maen",)

        def __init__(self):
            self.mean = burn.zeros(2, device=AUTODIFF)

        def forward(self, x):
            return x - self.mean

    with pytest.raises(burn.ArgumentError, match="'maen' as a buffer"):
        Typo()(example())
    with pytest.raises(burn.ArgumentError, match="attribute of the class"):
        Net(device=PLAIN).buffers = ("first",)


def test_a_tracked_value_is_not_assigned():
    weight = burn.ones(2, device=AUTODIFF).require_grad()
    target = burn.zeros(2, device=AUTODIFF)
    for x in (target, weight):
        with pytest.raises(burn.AutodiffError, match="computed from tracked"):
            x.assign(0.9 * x + 0.1 * weight)
    with burn.no_grad():
        target.assign(0.9 * target + 0.1 * weight)
    assert not target.is_tracked
    burn.testing.assert_close(target, burn.full(2, 0.1, device="cpu"))


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("Parameter", "float tensor"),
        ("ModuleList", "list"),
        ("ModuleDict", "dict"),
        ("MultiheadAttention", "MultiHeadAttention"),
        ("Dense", "Linear"),
        ("utils", "clip_by_global_norm"),
    ],
)
def test_names_of_other_libraries_have_a_hint(name, hint):
    with pytest.raises(AttributeError, match=hint):
        getattr(nn, name)
    assert not hasattr(nn, name)


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("cuda", r"\.to\("),
        ("zero_grad", "backward"),
        ("register_buffer", "buffers"),
        ("register_parameter", "attribute"),
        ("requires_grad_", "freeze"),
        ("children", "named_modules"),
        ("apply", "map"),
        ("device", "device"),
    ],
)
def test_methods_of_other_libraries_have_a_hint(name, hint):
    net = Net(device=PLAIN)
    with pytest.raises(AttributeError, match=hint):
        getattr(net, name)
    with pytest.raises(AttributeError, match="'Net' object has no attribute 'frist'"):
        _ = net.frist


def test_a_part_that_is_called_alone_in_a_function_of_grad_trains():
    class Dropping(nn.Module):
        def __init__(self):
            self.layer = nn.Linear(2, 64, device=PLAIN)
            self.drop = nn.Dropout(0.5)

        def forward(self, x):
            return self.drop(self.layer(x))

    net, dropped = Dropping(), []
    net(example())  # infers

    def loss(net):
        x = net.drop(burn.ones((1, 64), device=PLAIN))
        dropped.append(int(burn.sum(x == 0.0)))
        return (net.layer(example()) * x).sum()

    burn.grad(loss)(net)
    assert 0 < dropped[0] < 64
    assert net.drop(burn.ones(8, device=PLAIN)).tolist() == [1.0] * 8


def test_an_object_that_has_every_attribute_is_no_module():
    net = Net(device=PLAIN)
    net.logger = unittest.mock.MagicMock()
    assert len(net.parameters()) == 7
    assert burn.tree.map(lambda x: x, net).logger is net.logger
    assert "first=Linear(2, 3)" in repr(net)


def test_a_copy_on_a_plain_device_infers_whatever_the_original_does():
    net = nn.Sequential(nn.Linear(2, 64, device=AUTODIFF), nn.Dropout(0.5))
    net(example())
    plain = burn.tree.map(lambda p: p.detach().inner(), net)
    moved = burn.tree.map(lambda p: p.detach(), net).to(PLAIN)
    stacked = burn.tree.map(lambda *ps: burn.stack(ps), plain, moved)
    mapped = burn.vmap(lambda net, x: net(x), in_axes=(0, None))(stacked, example())
    for output in (plain(example()), moved(example()), *mapped):
        burn.testing.assert_close(output, net[0](example()).inner())
    assert not plain.training
    assert net.training
    outputs = burn.vmap(lambda net, x: net(x), in_axes=(None, 0))(net, example()[:, None])
    assert int(burn.sum(outputs == 0.0)) > 0
