"""Losses against torch, in values and gradients, with all options and at the edges."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import burn
from burn.nn import functional

CPU = burn.Device("cpu")
AUTODIFF = CPU.autodiff()
RANDOM = np.random.default_rng(6)
REDUCTIONS = ("mean", "sum", "none")

for_each_reduction = pytest.mark.parametrize("reduction", REDUCTIONS)


def tensor(values, **options):
    return burn.asarray(values, device=CPU, **options)


def leaf(values):
    return burn.asarray(np.asarray(values, np.float64), device=AUTODIFF).require_grad()


def compare(ours, theirs, *arrays, rtol=1e-9, atol=1e-11):
    """Values, and gradients by all arrays."""
    xs = [leaf(array) for array in arrays]
    ys = [torch.tensor(np.asarray(array, np.float64), requires_grad=True) for array in arrays]
    output, expected = ours(*xs), theirs(*ys)
    assert output.shape == tuple(expected.shape)
    np.testing.assert_allclose(
        output.inner().numpy(), expected.detach().numpy(), rtol=rtol, atol=atol
    )
    gradients = output.sum().backward()
    expected.sum().backward()
    for x, y in zip(xs, ys, strict=True):
        found = x.grad(gradients).numpy()
        np.testing.assert_allclose(found, y.grad.numpy(), rtol=rtol, atol=atol)


def normal(*shape):
    return RANDOM.normal(size=shape)


@for_each_reduction
@pytest.mark.parametrize("shape", [(), (5,), (2, 3)])
def test_losses_of_differences_are_those_of_torch(shape, reduction):
    x, y = normal(*shape) * 2.0, normal(*shape) * 2.0
    for ours, theirs, options in [
        (functional.mse_loss, F.mse_loss, {}),
        (functional.l1_loss, F.l1_loss, {}),
        (functional.huber_loss, F.huber_loss, {}),
        (functional.huber_loss, F.huber_loss, {"delta": 0.3}),
        (functional.smooth_l1_loss, F.smooth_l1_loss, {}),
        (functional.smooth_l1_loss, F.smooth_l1_loss, {"beta": 0.3}),
        (functional.smooth_l1_loss, F.smooth_l1_loss, {"beta": 0.0}),
    ]:
        compare(
            lambda a, b: ours(a, b, reduction=reduction, **options),  # noqa: B023 — used at once
            lambda a, b: theirs(a, b, reduction=reduction, **options),  # noqa: B023 — likewise
            x,
            y,
        )


def test_huber_loss_at_its_kinks():
    compare(functional.huber_loss, F.huber_loss, [1.0, -1.0, 0.0, 1e6], [0.0] * 4)


@pytest.mark.parametrize("loss", [functional.mse_loss, functional.l1_loss, functional.huber_loss])
def test_losses_do_not_broadcast(loss):
    with pytest.raises(burn.ShapeError, match=r"shapes \(3, 1\) and \(3,\) differ"):
        loss(tensor(np.ones((3, 1))), tensor(np.ones(3)))


def test_losses_of_integers_are_floats():
    x, y = tensor([1, 2, 7]), tensor([1, 4, 7])
    assert functional.mse_loss(x, y, reduction="none").tolist() == [0.0, 4.0, 0.0]
    assert functional.l1_loss(x.astype("uint8"), y.astype("uint8"), reduction="sum").item() == 2.0


@pytest.mark.parametrize(
    "call",
    [
        lambda x: functional.mse_loss(x, x, reduction="batchmean"),
        lambda x: functional.kl_div(x, x, reduction="average"),
        lambda x: functional.cross_entropy(x, tensor([0]), reduction=None),
    ],
)
def test_an_unknown_reduction_is_named(call):
    with pytest.raises(burn.ArgumentError, match="reduction is"):
        call(tensor([[1.0, 2.0]]))


def test_parameters_of_losses_are_checked():
    x = tensor([1.0])
    with pytest.raises(burn.ArgumentError, match=r"delta is 0\.0"):
        functional.huber_loss(x, x, delta=0.0)
    with pytest.raises(burn.ArgumentError, match="beta is -1"):
        functional.smooth_l1_loss(x, x, beta=-1.0)
    with pytest.raises(burn.OperandTypeError, match="delta must be a number"):
        functional.huber_loss(x, x, delta="1")
    with pytest.raises(burn.ArgumentError, match="label_smoothing is 2"):
        functional.cross_entropy(tensor([[1.0, 2.0]]), tensor([0]), label_smoothing=2)


@for_each_reduction
@pytest.mark.parametrize("with_weight", [False, True])
@pytest.mark.parametrize("with_pos_weight", [False, True])
def test_binary_cross_entropy_is_that_of_torch(with_weight, with_pos_weight, reduction):
    weight = RANDOM.random((4, 3)) if with_weight else None
    pos_weight = RANDOM.random(3) + 0.5 if with_pos_weight else None

    def options(make):
        return {
            "weight": None if weight is None else make(weight),
            "pos_weight": None if pos_weight is None else make(pos_weight),
            "reduction": reduction,
        }

    compare(
        lambda x, y: functional.binary_cross_entropy_with_logits(x, y, **options(tensor)),
        lambda x, y: F.binary_cross_entropy_with_logits(x, y, **options(torch.tensor)),
        normal(4, 3) * 3.0,
        RANDOM.random((4, 3)),
    )


def test_binary_cross_entropy_is_exact_where_the_prediction_is_right():
    logits, targets = [-50.0, -20.0, 20.0, 50.0, 0.0, -1000.0], [0.0, 0.0, 1.0, 1.0, 1.0, 1.0]
    x = leaf(logits)
    losses = functional.binary_cross_entropy_with_logits(x, tensor(targets), reduction="none")
    signs = [1.0 if target else -1.0 for target in targets]
    expected = [
        math.log1p(math.exp(-sign * logit)) if sign * logit > -700 else -sign * logit
        for sign, logit in zip(signs, logits, strict=True)
    ]
    np.testing.assert_allclose(losses.inner().numpy(), expected, rtol=1e-12)
    slopes = x.grad(losses.sum().backward()).numpy()
    assert slopes[4] == -0.5
    assert np.isfinite(slopes).all()


def test_binary_targets_may_be_booleans():
    loss = functional.binary_cross_entropy_with_logits(tensor([0.0, 0.0]), tensor([True, False]))
    assert loss.item() == pytest.approx(math.log(2.0))


@pytest.mark.parametrize("reduction", [*REDUCTIONS, "batchmean"])
@pytest.mark.parametrize("log_target", [False, True])
def test_kl_div_is_that_of_torch(log_target, reduction):
    target = RANDOM.random((4, 3)) + 0.01
    target /= target.sum(axis=1, keepdims=True)

    def theirs(x, y):
        if reduction == "mean":  # torch warns of its own mean
            return F.kl_div(x, y, log_target=log_target, reduction="none").mean()
        return F.kl_div(x, y, log_target=log_target, reduction=reduction)

    compare(
        lambda x, y: functional.kl_div(x, y, log_target=log_target, reduction=reduction),
        theirs,
        np.log(RANDOM.random((4, 3))),
        np.log(target) if log_target else target,
    )


@pytest.mark.parametrize("log_target", [False, True])
def test_kl_div_of_probability_0_is_0(log_target):
    target = [-math.inf, 0.0] if log_target else [0.0, 1.0]
    x, y = leaf([-math.inf, -1.0]), leaf(target)
    loss = functional.kl_div(x, y, log_target=log_target, reduction="sum")
    assert loss.inner().item() == 1.0
    gradients = loss.backward()
    assert x.grad(gradients).tolist() == [0.0, -1.0]
    assert np.isfinite(y.grad(gradients).numpy()).all()


CLASS_SHAPES = [((5, 4), 1), ((4,), 0), ((3, 4, 2), 1), ((2, 3, 4), 2), ((4, 5), 0)]


def classes(shape, axis, ignore_index):
    targets = RANDOM.integers(0, 4, size=(*shape[:axis], *shape[axis + 1 :]))
    if ignore_index is not None and targets.ndim:
        targets.flat[0] = ignore_index
    return targets


def class_first(axis):
    """torch has its classes along axis 1, or 0 of a vector."""
    return lambda x: x if x.ndim == 1 else x.movedim(axis, 1)


@for_each_reduction
@pytest.mark.together(("shape", "axis"), CLASS_SHAPES)
@pytest.mark.parametrize("with_weight", [False, True])
@pytest.mark.parametrize("ignore_index", [None, -100, 2])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_cross_entropy_is_that_of_torch(
    shape, axis, with_weight, ignore_index, smoothing, reduction
):
    targets = classes(shape, axis, ignore_index)
    weight = RANDOM.random(4) + 0.1 if with_weight else None
    compare(
        lambda x: functional.cross_entropy(
            x,
            tensor(targets),
            axis=axis,
            weight=None if weight is None else tensor(weight),
            ignore_index=ignore_index,
            label_smoothing=smoothing,
            reduction=reduction,
        ),
        lambda x: F.cross_entropy(
            class_first(axis)(x),
            torch.tensor(targets),
            weight=None if weight is None else torch.tensor(weight),
            ignore_index=-1 if ignore_index is None else ignore_index,
            label_smoothing=smoothing,
            reduction=reduction,
        ),
        normal(*shape),
    )


@for_each_reduction
@pytest.mark.together(("shape", "axis"), CLASS_SHAPES)
@pytest.mark.parametrize("with_weight", [False, True])
@pytest.mark.parametrize("ignore_index", [None, -100, 2])
def test_nll_loss_is_that_of_torch(shape, axis, with_weight, ignore_index, reduction):
    targets = classes(shape, axis, ignore_index)
    weight = RANDOM.random(4) + 0.1 if with_weight else None
    compare(
        lambda x: functional.nll_loss(
            x,
            tensor(targets),
            axis=axis,
            weight=None if weight is None else tensor(weight),
            ignore_index=ignore_index,
            reduction=reduction,
        ),
        lambda x: F.nll_loss(
            class_first(axis)(x),
            torch.tensor(targets),
            weight=None if weight is None else torch.tensor(weight),
            ignore_index=-1 if ignore_index is None else ignore_index,
            reduction=reduction,
        ),
        normal(*shape),
    )


@for_each_reduction
@pytest.mark.parametrize("with_weight", [False, True])
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_cross_entropy_of_probabilities_is_that_of_torch(with_weight, smoothing, reduction):
    weight = RANDOM.random(4) + 0.1 if with_weight else None
    targets = RANDOM.random((3, 4))
    compare(
        lambda x, y: functional.cross_entropy(
            x,
            y,
            weight=None if weight is None else tensor(weight),
            label_smoothing=smoothing,
            reduction=reduction,
        ),
        lambda x, y: F.cross_entropy(
            x,
            y,
            weight=None if weight is None else torch.tensor(weight),
            label_smoothing=smoothing,
            reduction=reduction,
        ),
        normal(3, 4),
        targets / targets.sum(axis=1, keepdims=True),
    )


@pytest.mark.parametrize("loss", [functional.cross_entropy, functional.nll_loss])
def test_where_everything_is_ignored_the_mean_is_nan_and_the_sum_0(loss):
    scores, targets = tensor([[1.0, 2.0], [3.0, 4.0]]), tensor([-100, -100])
    assert math.isnan(loss(scores, targets, ignore_index=-100).item())
    assert loss(scores, targets, ignore_index=-100, reduction="sum").item() == 0.0
    x = leaf([[1.0, 2.0]])
    gradients = loss(x, tensor([9]), ignore_index=9, reduction="sum").backward()
    assert x.grad(gradients).tolist() == [[0.0, 0.0]]


@pytest.mark.parametrize("loss", [functional.cross_entropy, functional.nll_loss])
def test_no_examples(loss):
    scores, targets = tensor(np.zeros((0, 3))), tensor(np.zeros(0, np.int64))
    assert math.isnan(loss(scores, targets).item())
    assert loss(scores, targets, reduction="sum").item() == 0.0
    assert loss(scores, targets, weight=tensor(np.ones(3)), reduction="none").shape == (0,)


@pytest.mark.parametrize("loss", [functional.cross_entropy, functional.nll_loss])
def test_class_losses_refuse_what_does_not_fit(loss):
    scores = tensor([[1.0, 2.0]])
    with pytest.raises(burn.ShapeError, match="one class index per example"):
        loss(scores, tensor([[0]]))
    with pytest.raises(burn.ShapeError, match="weight has shape"):
        loss(scores, tensor([0]), weight=tensor([1.0]))
    with pytest.raises(burn.OutOfRangeError):
        loss(scores, tensor([2])).item()


def test_probabilities_have_no_ignored_class():
    scores = tensor([[1.0, 2.0]])
    with pytest.raises(burn.ArgumentError, match="ignore_index is for targets that are classes"):
        functional.cross_entropy(scores, scores, ignore_index=0)


CTC_SHAPES = [(6, 2, 4, 3), (10, 3, 5, 4), (50, 4, 20, 12)]


def ctc_case(frames, batch, classes, labels):
    """Logits, targets without the blank 0, and lengths that fit."""
    targets = RANDOM.integers(1, classes, size=(batch, labels))
    targets[0, 1:3] = targets[0, 0]  # repeated labels need blanks between them
    inputs = RANDOM.integers(frames - 1, frames + 1, size=batch)
    counts = RANDOM.integers(1, labels + 1, size=batch)
    return normal(frames, batch, classes) * 2.0, targets, inputs, counts


def compare_ctc(logits, targets, inputs, counts, *, rtol=1e-8, atol=1e-10, **options):
    """Through a softmax: then torch's gradient is that by the logits."""
    compare(
        lambda x: functional.ctc_loss(
            functional.log_softmax(x), tensor(targets), tensor(inputs), tensor(counts), **options
        ),
        lambda x: F.ctc_loss(
            F.log_softmax(x, -1),
            torch.tensor(targets),
            torch.tensor(inputs),
            torch.tensor(counts),
            **options,
        ),
        logits,
        rtol=rtol,
        atol=atol,
    )


@for_each_reduction
@pytest.mark.parametrize("shape", CTC_SHAPES)
def test_ctc_loss_is_that_of_torch(shape, reduction):
    compare_ctc(*ctc_case(*shape), reduction=reduction)


def test_ctc_loss_with_another_blank():
    logits, targets, inputs, counts = ctc_case(8, 2, 4, 3)
    compare_ctc(logits, targets - 1, inputs, counts, blank=3)


def test_ctc_loss_of_empty_targets():
    logits, targets, inputs, _ = ctc_case(8, 2, 4, 3)
    compare_ctc(logits, targets, inputs, np.array([0, 2]), reduction="none")
    compare_ctc(logits, targets, inputs, np.array([0, 2]))
    compare_ctc(logits, targets[:, :0], inputs, np.array([0, 0]), reduction="sum")


@for_each_reduction
def test_a_target_that_does_not_fit_is_0_on_request(reduction):
    # The first needs 2 frames, the second 3: a blank between its equal labels.
    logits, targets = normal(2, 3, 4), np.array([[1, 2], [1, 1], [3, 0]])
    inputs, counts = np.array([2, 2, 1]), np.array([2, 2, 1])
    compare_ctc(logits, targets, inputs, counts, zero_infinity=True, reduction=reduction)


def test_a_target_that_does_not_fit_is_infinite_without_a_gradient():
    x = leaf(normal(2, 2, 4))
    losses = functional.ctc_loss(
        functional.log_softmax(x),
        tensor([[1, 1], [1, 2]]),
        tensor([2, 2]),
        tensor([2, 2]),
        reduction="none",
    )
    first, second = losses.inner().tolist()
    assert first == math.inf
    assert math.isfinite(second)
    gradient = x.grad(losses.sum().backward()).numpy()
    assert not gradient[:, 0].any()
    assert gradient[:, 1].any()


def test_fewer_frames_than_labels():
    log_probs = functional.log_softmax(tensor(normal(1, 1, 3)))
    targets, one, two = tensor([[1, 2]]), tensor([1]), tensor([2])
    assert functional.ctc_loss(log_probs, targets, one, two).item() == math.inf
    assert functional.ctc_loss(log_probs, targets, one, two, zero_infinity=True).item() == 0.0


def test_ctc_loss_in_float32_stays_finite_over_many_frames():
    logits, targets, _, _ = ctc_case(2000, 1, 30, 40)
    log_probs = functional.log_softmax(tensor(logits, dtype="float32"))
    loss = functional.ctc_loss(
        log_probs, tensor(targets), tensor([2000]), tensor([40]), reduction="sum"
    )
    expected = F.ctc_loss(
        F.log_softmax(torch.tensor(logits), -1),
        torch.tensor(targets),
        torch.tensor([2000]),
        torch.tensor([40]),
        reduction="sum",
    )
    assert loss.item() == pytest.approx(expected.item(), rel=1e-5)


@pytest.mark.parametrize(
    ("inputs", "counts"), [([3, 4], [1, 1]), ([3, 3], [1, 3]), ([-1, 3], [1, 1]), ([3, 3], [-1, 1])]
)
def test_lengths_that_are_too_large_or_negative_are_refused(inputs, counts):
    log_probs = functional.log_softmax(tensor(normal(3, 2, 4)))
    with pytest.raises(burn.OutOfRangeError, match="ctc_loss"):
        functional.ctc_loss(
            log_probs, tensor([[1, 2], [1, 2]]), tensor(inputs), tensor(counts)
        ).item()


LABELS = {
    "cross_entropy": lambda labels: functional.cross_entropy(scores_on(labels), labels),
    "cross_entropy, ignored": lambda labels: functional.cross_entropy(
        scores_on(labels), labels, ignore_index=-100
    ),
    "nll_loss": lambda labels: functional.nll_loss(scores_on(labels), labels),
    "nll_loss, weighted": lambda labels: functional.nll_loss(
        scores_on(labels), labels, weight=burn.ones(3, device=labels.device)
    ),
    "embedding": lambda labels: functional.embedding(
        burn.ones((3, 2), device=labels.device), labels
    ),
    "ctc_loss": lambda labels: functional.ctc_loss(
        burn.ones((4, 2, 3), device=labels.device),
        labels.reshape((2, 1)),
        burn.asarray([4, 4], device=labels.device),
        burn.asarray([1, 1], device=labels.device),
    ),
}


def scores_on(labels):
    return burn.ones((2, 3), device=labels.device)


@pytest.fixture(params=["cpu", "torch/cpu", "opencl/cpu"])
def device(request):
    try:
        return burn.Device(request.param)
    except burn.DeviceUnavailableError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize("name", LABELS)
def test_labels_do_not_count_from_the_end(name, device):
    for wrong in (-1, -3, 3):
        with pytest.raises(IndexError, match="out of range for an axis of length 3"):
            LABELS[name](burn.asarray([wrong, 1], device=device)).tolist()
    assert np.isfinite(LABELS[name](burn.asarray([2, 1], device=device)).numpy()).all()


def test_the_blank_is_no_label(device):
    with pytest.raises(burn.OutOfRangeError, match="the blank as a label"):
        LABELS["ctc_loss"](burn.asarray([0, 1], device=device)).tolist()


@pytest.mark.parametrize("wrong", [-0.5, 1.5, math.nan, math.inf, 2, -1])
def test_binary_targets_are_probabilities(wrong, device):
    logits, targets = burn.ones(3, device=device), burn.asarray([0, 1, wrong], device=device)
    for reduction in ("none", "mean"):
        with pytest.raises(burn.OutOfRangeError, match=r"logits: a target is not in \[0, 1\]"):
            functional.binary_cross_entropy_with_logits(
                logits, targets, reduction=reduction
            ).tolist()


@pytest.mark.parametrize("loss", [functional.cross_entropy, functional.nll_loss])
def test_the_ignored_index_is_an_integer_which_may_be_negative(loss):
    scores, targets = tensor([[1.0, 2.0], [3.0, 4.0]]), tensor([-1, 0])
    assert loss(scores, targets, ignore_index=-1).item() == loss(scores[1:], targets[1:]).item()
    for wrong in (1.5, True, "0"):
        with pytest.raises(burn.OperandTypeError, match="ignore_index must be an integer"):
            loss(scores, targets, ignore_index=wrong)


def transducer_loss(x, targets, frames, labels, blank=0):
    """Equations 16 to 18 of Graves (2012), cell by cell."""
    x = x - np.log(np.exp(x).sum(-1, keepdims=True))
    losses = []
    for n in range(len(x)):
        reached = np.full((frames[n], labels[n] + 1), -np.inf)
        for t, u in np.ndindex(reached.shape):
            ways = [0.0] if t == u == 0 else []
            if t:
                ways.append(reached[t - 1, u] + x[n, t - 1, u, blank])
            if u:
                ways.append(reached[t, u - 1] + x[n, t, u - 1, targets[n, u - 1]])
            reached[t, u] = np.logaddexp.reduce(ways)
        losses.append(-reached[-1, -1] - x[n, frames[n] - 1, labels[n], blank])
    return np.array(losses)


TRANSDUCER = (
    RANDOM.normal(size=(4, 5, 4, 6)),
    np.array([[2, 1, 1], [5, 3, 0], [9, 9, 9], [4, -7, 9]]),
    np.array([5, 3, 1, 4]),
    np.array([3, 2, 0, 1]),
)
"""Scores, labels (of which some are beyond the lengths), numbers of frames and of labels."""


@for_each_reduction
def test_the_loss_of_transducers_is_that_of_its_equations(reduction):
    x, *rest = TRANSDUCER
    expected = transducer_loss(x, *rest)
    ours = functional.rnnt_loss(tensor(x), *map(tensor, rest), reduction=reduction)
    expected = expected if reduction == "none" else getattr(expected, reduction)()
    np.testing.assert_allclose(ours.numpy(), expected, rtol=1e-12)
    layer = burn.nn.RNNTLoss(reduction=reduction)
    assert layer(tensor(x), *map(tensor, rest)).tolist() == ours.tolist()


def test_the_gradient_of_the_loss_of_transducers_is_that_of_its_equations():
    x, *rest = TRANSDUCER
    scores = leaf(x)
    loss = functional.rnnt_loss(scores, *map(tensor, rest), reduction="sum")
    gradient = scores.grad(loss.backward()).numpy()
    assert not gradient[1, 3:].any()  # beyond the frames
    assert not gradient[2, :, 1:].any()  # beyond the labels
    np.testing.assert_allclose(gradient.sum(-1), 0.0, atol=1e-12)
    for index in [(0, 0, 0, 2), (0, 4, 3, 0), (1, 1, 1, 3), (3, 2, 0, 5), (2, 0, 0, 0)]:
        ends = []
        for sign in (1.0, -1.0):
            moved = x.copy()
            moved[index] += sign * 1e-5
            ends.append(transducer_loss(moved, *rest).sum())
        assert gradient[index] == pytest.approx((ends[0] - ends[1]) / 2e-5, abs=1e-8)


def test_transducers_take_logarithms_of_probabilities_and_any_blank():
    x, targets, frames, labels = TRANSDUCER
    targets = np.where(targets == 5, 0, np.maximum(targets, 0) % 5)
    rest = [tensor(item) for item in (targets, frames, labels)]
    logs = functional.log_softmax(tensor(x))
    ours = functional.rnnt_loss(logs, *rest, blank=-1, fused_log_softmax=False, reduction="none")
    np.testing.assert_allclose(ours.numpy(), transducer_loss(x, targets, frames, labels, blank=5))


@pytest.mark.parametrize(
    ("targets", "frames", "labels"),
    [
        ([[1, 0]], [3], [2]),
        ([[1, 9]], [3], [2]),
        ([[-1, 1]], [3], [2]),
        ([[1, 1]], [0], [2]),
        ([[1, 1]], [4], [2]),
        ([[1, 1]], [3], [3]),
        ([[1, 1]], [3], [-1]),
    ],
)
def test_transducers_refuse_labels_and_lengths_out_of_range(targets, frames, labels):
    x = burn.zeros((1, 3, 3, 4), device=CPU)
    with pytest.raises(burn.OutOfRangeError, match="rnnt_loss"):
        functional.rnnt_loss(x, *map(tensor, (targets, frames, labels))).item()


def test_gram_matrices_are_means_of_products_of_channels():
    x = RANDOM.normal(size=(2, 3, 4, 5))
    expected = np.einsum("ncij,ndij->ncd", x, x) / (3 * 4 * 5)
    np.testing.assert_allclose(functional.gram_matrix(tensor(x)).numpy(), expected)
    large = functional.gram_matrix(tensor(np.full((1, 2, 8), 300.0), dtype="float16"))
    np.testing.assert_allclose(large.numpy(), 45000.0, rtol=1e-3)  # its squares are beyond float16


@for_each_reduction
def test_the_style_of_images_is_compared_layer_by_layer(reduction):
    shapes = ((2, 3, 4, 5), (2, 3, 6))

    def theirs(*arrays):
        total = 0.0
        for pair in zip(arrays[:2], arrays[2:], strict=True):
            rows = [part.flatten(2) for part in pair]
            grams = [row @ row.mT / (row.shape[1] * row.shape[2]) for row in rows]
            total = total + F.mse_loss(*grams, reduction=reduction)
        return total

    def ours(*arrays):
        return burn.nn.GramMatrixLoss(reduction=reduction)(list(arrays[:2]), list(arrays[2:]))

    compare(ours, theirs, *[RANDOM.normal(size=shape) for shape in (*shapes, *shapes)])
    with pytest.raises(burn.OperandTypeError, match="2 layers, and targets of 1"):
        functional.gram_matrix_loss([tensor([[1.0]])] * 2, [tensor([[1.0]])])
