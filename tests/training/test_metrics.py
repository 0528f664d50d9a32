"""Metrics: what they give is what NumPy and scikit-learn give, and they wait for nothing."""

import contextlib
import copy
import gc
import math
import pickle

import numpy as np
import pytest
from sklearn import metrics as sk

import burn
from burn import nn
from burn.nn import functional as F
from burn.testing import MockDevice, mock_backend
from burn.train import (
    AUROC,
    Accuracy,
    ConfusionMatrix,
    FBetaScore,
    Mean,
    MeanAbsoluteError,
    MeanSquaredError,
    Metric,
    Perplexity,
    Precision,
    Recall,
    evaluate,
)

CPU = burn.Device("cpu")
DEVICES = [*burn.Device.enumerate(), CPU.autodiff()]
CLASSES = 4
SMALL = MockDevice("npu", without=("float64", "int64", "uint64"))


def draw(seed=0, sizes=(5, 5, 3)):
    """Scores, shape (n, 4), and classes of some batches; the last one is smaller."""
    rng = np.random.default_rng(seed)
    return [
        (rng.normal(size=(n, CLASSES)).astype(np.float32), rng.integers(0, CLASSES, n))
        for n in sizes
    ]


def update(metric, batches, device=CPU):
    for batch in batches:
        metric.update(*[burn.asarray(x, device=device) for x in batch])
    return metric


def joined(batches):
    return [np.concatenate(x) for x in zip(*batches, strict=True)]


@contextlib.contextmanager
def small_device():
    with burn.registered(mock_backend("acme", [SMALL])):
        yield burn.Device("acme")


def every_metric():
    """One of each, and arguments of an update."""
    (scores, targets), *_ = [[burn.asarray(x, device=CPU) for x in item] for item in draw()]
    binary = scores[:, 0], burn.asarray([0, 1, 0, 1, 1], device=CPU)
    return [
        (Mean(), (scores.mean(), 5)),
        (Mean(), (scores[:, 0], targets)),
        (Accuracy(), (scores, targets)),
        (Accuracy(2, ignore_index=1), (scores, targets)),
        (ConfusionMatrix(CLASSES), (scores, targets)),
        (Precision(CLASSES, ignore_index=0), (scores, targets)),
        (Recall(CLASSES), (scores, targets)),
        (FBetaScore(CLASSES), (scores, targets)),
        (Perplexity(ignore_index=-1), (scores, targets)),
        (MeanAbsoluteError(), (scores, scores + 1.0)),
        (MeanSquaredError(root=True), (scores, scores + 2.0)),
        (AUROC(64), binary),
    ]


ALL = [type(metric).__name__ + str(index) for index, (metric, _) in enumerate(every_metric())]


# What they give.


@pytest.mark.parametrize("device", DEVICES, ids=str)
def test_metrics_of_classes_are_those_of_scikit_learn(device):
    batches = draw()
    scores, targets = joined(batches)
    predicted = scores.argmax(axis=1)
    assert update(Accuracy(), batches, device).compute() == sk.accuracy_score(targets, predicted)
    for k in (2, 3):
        found = update(Accuracy(k), batches, device).compute()
        expected = sk.top_k_accuracy_score(targets, scores, k=k, labels=range(CLASSES))
        assert found == pytest.approx(expected)
    matrix = update(ConfusionMatrix(CLASSES), batches, device).compute()
    assert matrix.dtype == np.int64
    np.testing.assert_array_equal(matrix, sk.confusion_matrix(targets, predicted))
    precision = update(Precision(CLASSES), batches, device).compute()
    assert precision == pytest.approx(
        sk.precision_score(targets, predicted, average="macro", zero_division=0)
    )


@pytest.mark.parametrize("average", ["macro", "micro", "weighted", None])
@pytest.mark.parametrize("ignored", [None, 2])
def test_precision_recall_and_f_are_those_of_scikit_learn(average, ignored):
    batches = draw(1, sizes=(40, 11))
    batches = [(scores.argmax(axis=1), targets) for scores, targets in batches]
    predicted, targets = joined(batches)
    kept = targets != ignored
    predicted, targets = predicted[kept], targets[kept]
    options = {"average": average, "labels": range(CLASSES), "zero_division": 0}
    if ignored is not None:
        options["labels"] = np.union1d(predicted, targets)
    f2 = FBetaScore(CLASSES, beta=2.0, average=average, ignore_index=ignored)
    for metric, expected in (
        (Precision(CLASSES, average=average, ignore_index=ignored), sk.precision_score),
        (Recall(CLASSES, average=average, ignore_index=ignored), sk.recall_score),
        (f2, lambda *x, **options: sk.fbeta_score(*x, beta=2.0, **options)),
    ):
        found = update(metric, batches).compute()
        np.testing.assert_allclose(found, expected(targets, predicted, **options), rtol=1e-12)


def test_macro_averages_leave_out_classes_that_are_not_there():
    metric = update(Recall(6), [([0, 1, 1], [0, 0, 1])])
    assert metric.compute() == sk.recall_score([0, 0, 1], [0, 1, 1], average="macro")


def test_binary_scores_are_compared_with_the_threshold():
    scores = np.array([-0.5, 0.2, 0.7, 0.4], np.float32)
    targets = np.array([0, 1, 1, 0])
    for threshold, expected in ((0.0, 0.75), (0.5, 0.75), (0.7, 0.5)):
        for kind in (bool, np.float32, np.uint8, np.int64):
            accuracy = update(Accuracy(threshold=threshold), [(scores, targets.astype(kind))])
            assert accuracy.compute() == expected
    f1 = update(FBetaScore(2, average="binary", threshold=0.0), [(scores, targets)]).compute()
    assert f1 == pytest.approx(sk.f1_score(targets, scores > 0))
    labels = scores.reshape(2, 2), targets.reshape(2, 2)  # several labels an example
    assert update(Accuracy(threshold=0.0), [labels]).compute() == 0.75
    assert update(Accuracy(threshold=0.0), [(scores > 0, targets)]).compute() == 0.75


def test_classes_may_lie_along_any_axis():
    rng = np.random.default_rng(2)
    scores, targets = rng.normal(size=(2, CLASSES, 3, 5)), rng.integers(0, CLASSES, (2, 3, 5))
    expected = (scores.argmax(axis=1) == targets).mean()
    assert update(Accuracy(axis=1), [(scores, targets)]).compute() == pytest.approx(expected)
    last = np.moveaxis(scores, 1, -1)
    assert update(Accuracy(), [(last, targets)]).compute() == pytest.approx(expected)
    top = update(Accuracy(2, axis=1), [(scores, targets)]).compute()
    assert top == update(Accuracy(2), [(last, targets)]).compute()
    one, other = ConfusionMatrix(CLASSES, axis=1), ConfusionMatrix(CLASSES)
    np.testing.assert_array_equal(
        update(one, [(scores, targets)]).compute(), update(other, [(last, targets)]).compute()
    )


@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint64"])
def test_targets_may_have_any_integer_dtype(dtype):
    rng = np.random.default_rng(8)
    scores, targets = rng.normal(size=(9, 300)), rng.integers(0, 200, 9)
    for metric in (
        Accuracy(50, ignore_index=-100),
        ConfusionMatrix(300, ignore_index=-100),
        Recall(300),
        Perplexity(ignore_index=-100),
    ):
        twin = copy.deepcopy(metric)
        update(metric, [(scores, targets)])
        update(twin, [(scores, targets.astype(dtype))])
        np.testing.assert_array_equal(metric.compute(), twin.compute())


def test_ignored_targets_count_nowhere():
    batches = draw(3, sizes=(30, 9))
    padded = [(x, np.where(y == 2, -100, y)) for x, y in batches]
    scores, targets = joined(batches)
    kept = targets != 2
    expected = sk.accuracy_score(targets[kept], scores[kept].argmax(axis=1))
    found = update(Accuracy(ignore_index=-100), padded).compute()
    assert found == pytest.approx(expected)
    top = update(Accuracy(2, ignore_index=-100), padded)
    assert top.sums()["count"] == kept.sum()
    matrix = update(ConfusionMatrix(CLASSES, ignore_index=-100), padded).compute()
    assert matrix.sum() == kept.sum()
    predicted = [(x.argmax(axis=1), y) for x, y in padded]
    assert update(Accuracy(ignore_index=-100), predicted).compute() == found


@pytest.mark.parametrize("device", DEVICES, ids=str)
def test_means_are_those_of_float64(device):
    batches = draw(4)
    scores, targets = joined(batches)
    logits = scores.astype(np.float64)
    losses = np.log(np.exp(logits).sum(axis=1)) - logits[np.arange(len(targets)), targets]
    perplexity = update(Perplexity(), batches, device).compute()
    assert perplexity == pytest.approx(math.exp(losses.mean()), rel=1e-6)

    mean, from_losses = Mean(), Perplexity()
    for x, y in batches:
        one = F.cross_entropy(burn.asarray(x, device=device), burn.asarray(y, device=device))
        mean.update(one, weight=len(y))
        from_losses.update_from_loss(one, len(y))
    assert mean.compute() == pytest.approx(losses.mean(), rel=1e-6)
    assert from_losses.compute() == pytest.approx(perplexity, rel=1e-6)

    others = [(x, (x * 0.5 + 1.0).astype(np.float32)) for x, _ in batches]
    x, y = [item.astype(np.float64) for item in joined(others)]
    squared = update(MeanSquaredError(), others, device).compute()
    assert squared == pytest.approx(((x - y) ** 2).mean(), rel=1e-6)
    root = update(MeanSquaredError(root=True), others, device).compute()
    assert root == pytest.approx(math.sqrt(squared))
    absolute = update(MeanAbsoluteError(), others, device).compute()
    assert absolute == pytest.approx(np.abs(x - y).mean(), rel=1e-6)


def test_a_mean_weighs_elements():
    x, weight = np.arange(6.0).reshape(2, 3), np.array([1.0, 0.0, 2.0])
    mean = update(Mean(), [(x, weight), (x[:1] + 7.0, np.array([[True, True, False]]))])
    values = np.concatenate([x.ravel(), (x[:1] + 7.0).ravel()])
    expected = np.average(values, weights=[1, 0, 2, 1, 0, 2, 1, 1, 0])
    assert mean.compute() == pytest.approx(expected)
    number = Mean()
    number.update(3.0, burn.asarray([1.0, 1.0], device=CPU))
    number.update(np.float32(6.0), np.int64(1))
    number.update(True)
    assert number.compute() == 13.0 / 4.0


@pytest.mark.parametrize("device", DEVICES, ids=str)
def test_the_area_under_the_curve_is_that_of_scikit_learn(device):
    rng = np.random.default_rng(5)
    batches = []
    for n in (40, 25):
        targets = rng.integers(0, 2, n)
        batches.append((np.round(rng.normal(size=n) + targets, 1).astype(np.float32), targets))
    scores, targets = joined(batches)
    auroc = update(AUROC(), batches, device).compute()
    assert auroc == pytest.approx(sk.roc_auc_score(targets, scores), abs=1e-12)


def test_the_area_under_the_curve_takes_logits_probabilities_and_infinity():
    rng = np.random.default_rng(6)
    targets = rng.integers(0, 2, 500)
    logits = (rng.normal(size=500) + 2 * targets) * 6
    for scores in (logits, 1 / (1 + np.exp(-logits / 4)), logits * 3):
        found = update(AUROC(), [(scores, targets)]).compute()
        assert found == pytest.approx(sk.roc_auc_score(targets, scores), abs=2e-3)
    ends = [math.inf, -math.inf, 0.0], [1, 0, 0]
    assert update(AUROC(), [ends]).compute() == 1.0


# Numbers.


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_sums_do_not_have_the_precision_of_narrow_inputs(dtype):
    x = burn.full(5000, 1.001, dtype=dtype, device=CPU)
    exact = x[:1].astype("float64").item()
    mean = Mean()
    mean.update(x)
    mean.update(x, weight=burn.ones(5000, dtype=dtype, device=CPU))
    assert mean.compute() == pytest.approx(exact, rel=1e-6)
    error = MeanAbsoluteError()
    error.update(x, burn.zeros_like(x))
    assert error.compute() == pytest.approx(exact, rel=1e-6)
    logits = burn.zeros((3000, 2), dtype=dtype, device=CPU)
    targets = burn.zeros(3000, dtype="int64", device=CPU)
    assert update(Perplexity(), [(logits, targets)]).compute() == pytest.approx(2.0, rel=1e-6)
    assert update(Accuracy(), [(logits, targets)]).compute() == 1.0


def test_float64_stays_float64():
    mean = Mean()
    mean.update(burn.asarray(1.0, dtype="float64", device=CPU))
    mean.update(burn.asarray(1.0 + 2**-40, dtype="float64", device=CPU))
    assert mean.compute() == 1.0 + 2**-41


@pytest.mark.parametrize("has_64_bits", [True, False])
def test_a_mean_of_millions_of_batches_does_not_stagnate(has_64_bits):
    with contextlib.nullcontext(CPU) if has_64_bits else small_device() as device:
        value = burn.asarray(0.1, dtype="float32", device=device)
        single = float(np.float32(0.1))
        mean = Mean()
        mean.update(value)
        state = mean.state_dict()
        state = {"total": state["total"] * 1e7, "weight": state["weight"] * 10_000_000}
        mean.load_state_dict(state)
        for _ in range(200):
            mean.update(value)
        total = mean.sums()["total"]
        assert total == pytest.approx(single * (1e7 + 200), rel=1e-12 if has_64_bits else 1e-9)


@pytest.mark.parametrize("has_64_bits", [True, False])
@pytest.mark.parametrize("first", [2**24, 2**31 - 3, 2**40])
def test_counts_are_exact(has_64_bits, first):
    with contextlib.nullcontext(CPU) if has_64_bits else small_device() as device:
        accuracy = Accuracy(ignore_index=0)
        batch = [burn.asarray(x, dtype=y, device=device) for x, y in (([1], "int32"),) * 2]
        accuracy.update(*batch)
        state = accuracy.state_dict()
        accuracy.load_state_dict({name: np.int64(first) for name in state})
        for _ in range(5):
            accuracy.update(*batch)
        assert accuracy.sums() == dict.fromkeys(state, first + 5)


def test_devices_without_64_bits_give_the_same():
    with small_device() as device:
        for (metric, arguments), (other, _) in zip(every_metric(), every_metric(), strict=True):
            there = [
                x.astype("int32" if x.dtype.is_integer else x.dtype).to_device(device)
                if isinstance(x, burn.Tensor)
                else x
                for x in arguments
            ]
            for _ in range(2):
                metric.update(*there)
                other.update(*arguments)
            np.testing.assert_allclose(metric.compute(), other.compute(), rtol=1e-6)


def test_infinity_and_nan_stay_what_they_are_also_without_64_bits():
    for context in (contextlib.nullcontext(CPU), small_device()):
        with context as device:
            for special, expected in ((math.inf, math.inf), (math.nan, math.nan)):
                mean = Mean()
                for value in (1.0, special, 2.0):
                    mean.update(burn.asarray(value, dtype="float32", device=device))
                np.testing.assert_equal(mean.compute(), expected)
                copied = Mean()
                copied.load_state_dict(mean.state_dict())
                copied.update(burn.asarray(1.0, dtype="float32", device=device))
                np.testing.assert_equal(copied.compute(), expected)


@pytest.mark.parametrize("device", DEVICES, ids=str)
def test_nan_is_the_largest_score_and_the_first_of_equals_counts(device):
    scores = np.array(
        [[math.nan, 1.0, 2.0], [1.0, math.nan, math.nan], [1.0, 1.0, 1.0]], np.float32
    )
    assert update(Accuracy(), [(scores, np.array([0, 1, 0]))], device).compute() == 1.0
    assert update(Accuracy(2), [(scores, np.array([2, 2, 1]))], device).compute() == 1.0
    assert update(Accuracy(2), [(scores, np.array([1, 0, 2]))], device).compute() == 0.0


def test_nan_of_losses_and_scores_is_seen():
    mean = Mean()
    mean.update(burn.asarray([math.nan, 1.0], device=CPU))
    assert math.isnan(mean.compute())
    assert math.isnan(update(AUROC(), [([math.nan, 1.0], [0, 1])]).compute())
    assert math.isnan(update(MeanSquaredError(), [([math.nan], [1.0])]).compute())
    assert math.isnan(update(Perplexity(), [([[math.nan, 1.0]], [1])]).compute())
    huge = update(Perplexity(), [([[1e30, -1e30]], [1])])
    assert huge.compute() == math.inf


@pytest.mark.parametrize(("metric", "arguments"), every_metric(), ids=ALL)
def test_an_empty_batch_changes_nothing(metric, arguments):
    metric.update(*arguments)
    before = metric.compute()
    metric.update(*[x[:0] if isinstance(x, burn.Tensor) and x.shape else x for x in arguments])
    np.testing.assert_array_equal(metric.compute(), before)


# Devices.


@pytest.mark.parametrize(("metric", "arguments"), every_metric(), ids=ALL)
def test_an_update_reads_nothing_and_a_result_is_read_once(metric, arguments, monkeypatch):
    metric.update(*arguments)
    backend, reads = CPU.ops.backend, []
    for name in ("to_data", "read_all", "sync"):
        original = getattr(backend, name)

        def noting(*values, _name=name, _original=original):
            reads.append(_name)
            return _original(*values)

        monkeypatch.setattr(backend, name, noting)
    metric.update(*arguments)
    assert not reads
    metric.compute()
    assert reads.count("read_all") == 1


@pytest.mark.parametrize(("metric", "arguments"), every_metric(), ids=ALL)
def test_tracked_inputs_are_detached(metric, arguments):
    device = CPU.autodiff()
    tracked = [
        x.to_device(device).require_grad() * 1.0
        if isinstance(x, burn.Tensor) and x.dtype.is_float
        else x
        for x in arguments
    ]
    twin = copy.deepcopy(metric)
    metric.update(*tracked)
    twin.update(*arguments)
    assert all(part.device is CPU for x in metric._sums.values() for part in x.parts)
    np.testing.assert_array_equal(metric.compute(), twin.compute())


def test_a_metric_keeps_no_graph():
    x = burn.ones(3, device=CPU.autodiff()).require_grad()
    mean = Mean()
    mean.update((x * 2.0).sum())
    gc.collect()
    assert mean.sums()["total"] == 6.0
    assert not any(part.is_tracked for part in mean._sums["total"].parts)


@pytest.mark.parametrize("device", burn.Device.enumerate(), ids=str)
def test_a_compiled_step_updates_metrics_with_one_program(device):
    batches = [[burn.asarray(x, device=device) for x in item] for item in draw(sizes=(5, 5, 5))]
    accuracy, mean, count = Accuracy(), Mean(), Mean()

    @burn.compile
    def step(scores, targets):
        loss = F.cross_entropy(scores, targets)
        accuracy.update(scores, targets)
        mean.update(loss, weight=len(targets))
        count.update(2.0)
        return loss

    eager = update(Accuracy(), batches)
    losses = [step(*batch).item() for batch in batches]
    assert accuracy.compute() == eager.compute()
    assert mean.compute() == pytest.approx(np.mean(losses), rel=1e-6)
    assert count.sums() == {"total": 6.0, "weight": 3.0}

    state = accuracy.state_dict()
    accuracy.reset()
    assert accuracy.is_empty
    step(*batches[0])
    assert accuracy.sums()["count"] == 5
    accuracy.load_state_dict(state)
    step(*batches[0])
    assert accuracy.sums()["count"] == 20
    assert step.programs == 1


def test_a_compiled_step_follows_sums_that_other_updates_have_moved():
    elsewhere = next((device for device in burn.Device.enumerate() if device is not CPU), None)
    if elsewhere is None:
        pytest.skip("there is one device")
    mean, x = Mean(), burn.asarray(1.0, device=CPU)
    step = burn.compile(lambda x: mean.update(x + 0.0) or x)
    step(x)
    mean.update(burn.asarray(2.0, device=elsewhere))
    step(x)
    step(x)
    mean.update(burn.asarray(4.0, device=elsewhere))
    assert mean.sums() == {"total": 9.0, "weight": 5.0}


@pytest.mark.parametrize("where", ["vmap", "trace", "fori_loop", "compute"])
def test_a_metric_is_not_updated_where_it_cannot_count(where):
    mean, x = Mean(), burn.asarray([1.0, 2.0], device=CPU)

    def use(x):
        mean.update(x.sum())
        return x

    def loop(x):
        return burn.fori_loop(0, 2, lambda _, x: use(x), x)

    def read(x):
        return x * mean.compute()

    mean.update(1.0)
    with pytest.raises(burn.BurnError, match="Mean"):
        {
            "vmap": lambda: burn.vmap(use)(x.reshape((2, 1))),
            "trace": lambda: burn.ir.trace(use, x),
            "fori_loop": lambda: burn.compile(loop)(x),
            "compute": lambda: burn.compile(read)(x),
        }[where]()
    assert mean.compute() == 1.0


def test_a_metric_is_updated_within_burn_grad():
    mean, x = Mean(), burn.asarray([1.0, 2.0], device=CPU)

    def loss_of(x):
        loss = (x * x).sum()
        mean.update(loss)
        return loss

    assert burn.grad(loss_of)(x).tolist() == [2.0, 4.0]
    assert mean.compute() == 5.0


def test_a_metric_in_a_checkpointed_function_counts_once():
    mean, x = Mean(), burn.asarray([1.0, 2.0], device=CPU.autodiff()).require_grad()

    def loss_of(x):
        loss = burn.exp(x).sum()
        mean.update(loss)
        return loss

    burn.checkpoint(loss_of)(x).backward()
    assert mean.sums()["weight"] == 1.0


def test_arrays_of_numpy_and_other_libraries_come_to_the_device():
    import torch

    scores, targets = draw()[0]
    expected = update(Accuracy(), [(scores, targets)]).compute()
    for x, y in (
        (scores, targets),
        (torch.asarray(scores), torch.asarray(targets)),
        (burn.asarray(scores, device="cpu"), targets),
    ):
        accuracy = Accuracy()
        accuracy.update(x, y)
        assert accuracy.compute() == expected


# States.


@pytest.mark.parametrize(("metric", "arguments"), every_metric(), ids=ALL)
def test_a_metric_that_is_saved_copied_or_merged_goes_on_to_the_bit(metric, arguments):
    def state(metric):
        return {name: (x.dtype, x.tolist()) for name, x in metric.state_dict().items()}

    fresh = copy.deepcopy(metric)
    assert fresh.is_empty
    assert fresh.state_dict() == {}
    for _ in range(3):
        metric.update(*arguments)
    saved = metric.state_dict()
    resumed, merged = copy.deepcopy(fresh), copy.deepcopy(fresh)
    resumed.load_state_dict(saved)
    copied, pickled = copy.deepcopy(metric), pickle.loads(pickle.dumps(metric))
    merged.update(*arguments)  # of a run that goes on, and knows its metric after a step
    merged.merge(resumed)
    for item in (metric, resumed, copied, pickled):
        item.update(*arguments)
        assert state(item) == state(merged)
    metric.reset()
    assert metric.is_empty
    metric.merge(resumed)
    assert state(metric) == state(resumed)
    resumed.load_state_dict({})
    assert resumed.is_empty


def test_a_state_is_not_changed_by_later_updates():
    mean = Mean()
    mean.update(burn.asarray(1.0, device=CPU))
    state = mean.state_dict()
    mean.update(burn.asarray(5.0, device=CPU))
    mean.load_state_dict(state)
    mean.update(2.0)
    assert state["total"] == 1.0
    assert mean.compute() == 1.5


def test_metrics_that_differ_do_not_merge():
    with pytest.raises(burn.ArgumentError, match="top_k"):
        Accuracy().merge(Accuracy(5))
    with pytest.raises(burn.OperandTypeError, match=r"Mean\.merge: takes another Mean"):
        Mean().merge(Accuracy())


@pytest.mark.parametrize(
    ("state", "match"),
    [
        ({"total": np.zeros(2), "weight": np.array(1.0)}, r"total has shape \(2,\)"),
        ({"total": np.array(1.0)}, "there are sums total, weight, and now total"),
        ({"total": "many", "weight": 1.0}, "'total' is no array of numbers"),
        ([1, 2], "takes what state_dict"),
    ],
)
def test_a_state_that_does_not_fit_changes_nothing(state, match):
    mean = Mean()
    mean.update(3.0)
    with pytest.raises(burn.BurnError, match=match):
        mean.load_state_dict(state)
    assert mean.compute() == 3.0
    fresh = Mean()
    with pytest.raises(burn.BurnError, match=match):
        fresh.load_state_dict(state)
    assert fresh.is_empty


@pytest.mark.parametrize(
    ("metric", "other", "arguments"),
    [
        (Accuracy(), Mean(), (1.0,)),
        (ConfusionMatrix(3), ConfusionMatrix(4), ([0], [0])),
        (Recall(3), FBetaScore(4), ([0], [0])),
        (AUROC(8), AUROC(16), ([0.0], [0])),
        (Perplexity(), Mean(), (1.0,)),
        (MeanSquaredError(), Accuracy(), ([0], [0])),
    ],
    ids=lambda x: type(x).__name__,
)
def test_a_metric_does_not_take_the_state_of_another_sort(metric, other, arguments):
    other.update(*[np.array(x) for x in arguments])
    with pytest.raises(burn.BurnError, match=rf"{type(metric).__name__}\.load_state_dict"):
        metric.load_state_dict(other.state_dict())
    assert metric.is_empty


def test_a_state_may_have_numbers_as_json_has_them():
    mean = Mean()
    mean.load_state_dict({"total": 3, "weight": 1})
    mean.update(1.5)
    assert mean.compute() == 2.25


def test_a_metric_shows_its_options():
    assert repr(Accuracy(5)) == "Accuracy(top_k=5, ignore_index=None, axis=-1, threshold=None)"
    assert repr(Mean()) == "Mean()"


# Errors.


@pytest.mark.parametrize(("metric", "arguments"), every_metric(), ids=ALL)
def test_without_an_update_there_is_nothing_to_compute(metric, arguments):
    name = type(metric).__name__
    with pytest.raises(burn.ArgumentError, match=rf"{name}\.compute: there was no update"):
        metric.compute()
    if name in ("ConfusionMatrix", "AUROC"):
        return
    empty = [x[:0] if isinstance(x, burn.Tensor) and x.shape else 0 for x in arguments]
    metric.update(*empty)
    with pytest.raises(burn.ArgumentError, match=rf"{name}\.compute: no \w+ counts"):
        metric.compute()


def of(shape, dtype="float32"):
    return burn.zeros(shape, dtype=dtype, device=CPU)


@pytest.mark.parametrize(
    ("update_of", "error", "match"),
    [
        (lambda: Accuracy().update(of((4, 3)), of(5, "int64")), burn.ShapeError, "Accuracy.update"),
        (lambda: Accuracy().update(of(()), of(5, "int64")), burn.ShapeError, "Accuracy.update"),
        (lambda: Accuracy().update(of((4, 3)), of(4)), burn.DTypeError, "Pass classes"),
        (lambda: Accuracy().update(of((4, 3), "int64"), of(4, "int64")), burn.DTypeError, "scores"),
        (lambda: Accuracy(4).update(of((4, 3)), of(4, "int64")), burn.ArgumentError, "3 classes"),
        (lambda: Accuracy(2).update(of(4, "int64"), of(4, "int64")), burn.ArgumentError, "no sco"),
        (lambda: Accuracy().update(of((4, 3)), of((4, 3))), burn.ArgumentError, "one-hot"),
        (lambda: Recall(2).update(of(4), of(4, "int64")), burn.ArgumentError, "threshold=0.0"),
        (
            lambda: Accuracy(threshold=0.0).update(of((4, 3)), of(4, "int64")),
            burn.ShapeError,
            "Scores of class 1",
        ),
        (lambda: Accuracy(threshold="0"), burn.OperandTypeError, "threshold"),
        (lambda: Accuracy().update(of((4, 1)), of(4, "int64")), burn.ShapeError, "squeeze"),
        (lambda: Accuracy(0), burn.ArgumentError, "top_k"),
        (lambda: Accuracy(axis=0.5), burn.OperandTypeError, "axis"),
        (lambda: Accuracy(axis=7).update(of((4, 3)), of(4, "int64")), burn.AxisError, "axis 7"),
        (lambda: Accuracy().update("a", of(4)), burn.OperandTypeError, "Accuracy.update"),
        (lambda: Accuracy().update(of(4, "complex64"), of(4)), burn.DTypeError, "real numbers"),
        (lambda: ConfusionMatrix(1), burn.ArgumentError, "classes"),
        (lambda: ConfusionMatrix(5).update(of((4, 3)), of(4, "int64")), burn.ShapeError, "of 3"),
        (
            lambda: ConfusionMatrix(5, threshold=0.0).update(of(4), of(4, "int64")),
            burn.ShapeError,
            "of 2",
        ),
        (lambda: Precision(3, average="binary"), burn.ArgumentError, "class 1 of two"),
        (lambda: Precision(3, average="mean"), burn.ArgumentError, "average is 'mean'"),
        (lambda: FBetaScore(3, beta=0.0), burn.ArgumentError, "beta"),
        (lambda: Mean().update(1.0, weight=-1.0), burn.ArgumentError, "weight"),
        (lambda: Mean().update(1.0, weight=math.inf), burn.ArgumentError, "weight"),
        (lambda: Mean().update(10**400), burn.ScalarRangeError, "value"),
        (lambda: Mean().update(of(3), of(2)), burn.ShapeError, "Mean.update"),
        (lambda: Mean().update(of(()), of(2)), burn.ShapeError, "Mean.update"),
        (lambda: Mean().update("much"), burn.OperandTypeError, "Mean.update"),
        (lambda: Mean().update(1.0, weight=None), burn.OperandTypeError, "Mean.update"),
        (lambda: Mean().update(1j), burn.BurnError, "Mean.update"),
        (lambda: MeanSquaredError().update(of((4, 1)), of(4)), burn.ShapeError, "one shape"),
        (lambda: AUROC().update(of((4, 2)), of(4, "int64")), burn.ShapeError, "AUROC.update"),
        (lambda: Perplexity().update(of((4, 3)), of((4, 3))), burn.DTypeError, "Perplexity"),
        (lambda: Perplexity().update_from_loss(of(3), 3), burn.ShapeError, "loss has shape"),
        (lambda: Perplexity().update_from_loss(of(()), of(())), burn.DTypeError, "Pass an integer"),
        (lambda: Perplexity().update_from_loss(1.0, -1), burn.ArgumentError, "count"),
    ],
)
def test_what_does_not_fit_is_an_error_that_names_the_metric(update_of, error, match):
    with pytest.raises(error, match=match):
        update_of()


def test_the_error_of_a_loss_says_in_which_metric():
    with pytest.raises(burn.ShapeError) as caught:
        Perplexity().update(of((4, 3)), of(5, "int64"))
    assert caught.value.__notes__ == ["in Perplexity.update"]


@pytest.mark.parametrize("device", DEVICES, ids=str)
@pytest.mark.parametrize("wrong", [-1, CLASSES])
def test_a_target_that_is_no_class_is_an_error_of_the_result(device, wrong):
    scores, targets = draw()[0]
    targets[2] = wrong
    classes = [Accuracy(), Accuracy(2), ConfusionMatrix(CLASSES), Recall(CLASSES)]
    for metric in classes if device is CPU else classes[::2]:
        update(metric, [(scores, targets)], device)
        with pytest.raises(burn.OutOfRangeError, match="1 of the targets"):
            metric.compute()


def test_a_target_of_two_classes_is_0_or_1():
    for metric in (Accuracy(threshold=0.0), AUROC(), ConfusionMatrix(2, threshold=0.0)):
        for targets in ([2, 1, 0], [0.5, 1.0, 0.0], [math.nan, 1.0, 0.0]):
            metric.reset()
            update(metric, [([0.1, 0.2, 0.3], targets)])
            with pytest.raises(burn.OutOfRangeError, match="1 of the targets"):
                metric.compute()
    predicted = update(ConfusionMatrix(2), [([0, 5], [1, 1])])
    with pytest.raises(burn.OutOfRangeError, match="1 of the targets"):
        predicted.compute()


def test_an_area_needs_both_classes():
    with pytest.raises(burn.ArgumentError, match="2 targets of class 0, and 0 of class 1"):
        update(AUROC(), [([0.1, 0.2], [0, 0])]).compute()


def test_a_metric_of_ones_own_adds_numbers_and_tensors_of_one_shape():
    class Own(Metric):
        def update(self, **amounts):
            self.add(**amounts)

    own = Own()
    vector = burn.asarray([1, 2], device=CPU)
    own.update(vector=vector, number=1, yes=burn.asarray(True, device=CPU))
    own.update(vector=vector, number=2, yes=False)
    sums = own.sums()
    assert (sums["vector"].tolist(), sums["number"], sums["yes"]) == ([2, 4], 3, 1)
    for amounts, error in (
        ({"vector": burn.asarray([1], device=CPU), "number": 1, "yes": 1}, burn.ShapeError),
        ({"vector": vector, "number": 1.5, "yes": 1}, burn.DTypeError),
        ({"number": 1}, burn.ArgumentError),
        ({"vector": vector, "number": 2**63, "yes": 1}, burn.ScalarRangeError),
        ({"vector": "a", "number": 1, "yes": 1}, burn.OperandTypeError),
    ):
        with pytest.raises(error, match=r"Own\.update"):
            own.update(**amounts)
    assert own.sums()["number"] == 3
    own.reset()
    own.update(other=2.5)  # nothing was added since the reset
    assert own.sums() == {"other": 2.5}
    with pytest.raises(NotImplementedError, match="Own has no method compute"):
        own.compute()
    with pytest.raises(NotImplementedError, match="Metric has no method update"):
        Metric().update()


# A whole data set.


def loader_of(batches, device=CPU):
    return [[burn.asarray(x, device=device) for x in batch] for batch in batches]


@pytest.mark.parametrize("device", DEVICES, ids=str)
def test_evaluate_weighs_a_smaller_last_batch_as_it_is(device):
    batches = draw(7)
    scores, targets = joined(batches)
    found = evaluate(
        lambda batch: (batch[0] * 2.0, batch[1]),
        loader_of(batches, device),
        accuracy=Accuracy(),
        loss=F.cross_entropy,
    )
    assert list(found) == ["accuracy", "loss"]
    assert found["accuracy"] == sk.accuracy_score(targets, scores.argmax(axis=1))
    losses = F.cross_entropy(*[burn.asarray(x, device=CPU) for x in (scores * 2.0, targets)])
    assert found["loss"] == pytest.approx(losses.item(), rel=1e-6)


def test_evaluate_takes_arguments_by_the_names_of_metrics():
    loader = loader_of(draw())

    def forward(batch):
        scores, targets = batch
        loss = F.cross_entropy(scores, targets)
        return {"accuracy": batch, "loss": (loss, len(targets)), "largest": scores.max()}

    found = evaluate(forward, loader, accuracy=Accuracy(), loss=Mean(), largest=Mean())
    same = evaluate(tuple, loader, accuracy=Accuracy(), loss=F.cross_entropy)
    assert found["loss"] == pytest.approx(same["loss"], rel=1e-12)
    assert found["accuracy"] == same["accuracy"]


def test_evaluate_infers_and_leaves_modes_and_gradients_as_they_were():
    device = CPU.autodiff()
    frozen = nn.Sequential(nn.BatchNorm1d(CLASSES, device=device), nn.Dropout(0.5)).eval()
    net = nn.Sequential(nn.Linear(CLASSES, CLASSES, device=device), frozen, nn.Dropout(0.5))
    head = nn.Linear(CLASSES, CLASSES, device=device).eval()
    modes = [module.training for module in net.modules()]
    assert True in modes
    assert False in modes
    seen = []

    def forward(batch):
        scores = head(net(batch[0]))
        seen.append((scores.is_tracked, [item.training for item in [*net.modules(), head]]))
        return scores, batch[1]

    loader = loader_of(draw())
    for _ in range(2):
        evaluate(forward, loader, model=[net, head], accuracy=Accuracy())
    assert all(not tracked and not any(training) for tracked, training in seen)

    def fail(batch):
        raise KeyError("stop")

    with pytest.raises(KeyError, match="stop"):
        evaluate(fail, loader, model=net, accuracy=Accuracy())
    assert [module.training for module in net.modules()] == modes
    assert not head.training
    assert net(loader[0][0]).is_tracked
    evaluate(net, [x for x, _ in loader], mean=Mean())  # a module is the model itself
    assert [module.training for module in net.modules()] == modes
    net.eval()[1].train()  # a part alone trains, as when the rest is frozen
    modes = [module.training for module in net.modules()]
    evaluate(forward, loader, model=net, accuracy=Accuracy())
    assert [module.training for module in net.modules()] == modes
    assert net[1].training


def test_evaluate_begins_anew_each_time():
    loader, accuracy = loader_of(draw()), Accuracy()
    first = evaluate(tuple, loader, accuracy=accuracy)
    assert evaluate(tuple, loader, accuracy=accuracy) == first
    assert first["accuracy"] == accuracy.compute()


def test_evaluate_may_show_a_bar(capsys):
    evaluate(tuple, loader_of(draw()), progress=True, accuracy=Accuracy())
    evaluate(tuple, iter(loader_of(draw())), progress=True, accuracy=Accuracy())
    assert not capsys.readouterr().out


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda x: evaluate(tuple, [], a=Accuracy()), "the loader has no batches"),
        (lambda x: evaluate(tuple, x), "there is no metric"),
        (lambda x: evaluate(3, x, a=Accuracy()), "forward must be a function"),
        (lambda x: evaluate(tuple, x, a=Accuracy), r"Pass an object .*: a=Accuracy\(\)"),
        (lambda x: evaluate(tuple, x, a=3.0), "a is 3.0, which is no metric"),
        (lambda x: evaluate(tuple, x, a=Mean(), model="net"), "model has an object of type str"),
        (lambda x: evaluate(tuple, x, a=Mean(), model=3), "model has an object of type int"),
        (lambda x: evaluate(lambda batch: None, x, a=Mean()), "forward returned None"),
        (lambda x: evaluate(lambda batch: {"b": 1}, x, a=Mean()), "values for b, .* metrics are a"),
        (lambda x: evaluate(tuple, x, **dict.fromkeys("ab", Mean())), "a metric has two names"),
        (lambda x: evaluate(tuple, 5, a=Mean()), "loader is no iterable"),
    ],
)
def test_what_evaluate_cannot_use_is_an_error(call, match):
    with pytest.raises(burn.BurnError, match=match):
        call(loader_of(draw()))


def test_an_error_of_a_metric_says_in_which_one():
    with pytest.raises(TypeError) as caught:
        evaluate(lambda batch: batch[0], loader_of(draw()), right=Accuracy())
    assert caught.value.__notes__ == ["in the metric 'right' of evaluate"]
