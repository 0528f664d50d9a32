"""DataLoader in one process: batches, orders, random numbers, positions, errors."""

import copy
import gc
import itertools
import json
import pickle
import random
import threading
import warnings

import numpy as np
import pytest
import torch

import burn
from burn.data import DataLoader, rng
from burn.errors import ArgumentError, OperandTypeError, WorkerError
from data_sources import Endless, Failing, Numbers, Random, noisy

CPU = "cpu"

WORKERS = [{"workers": 0}, {"workers": 1, "threads": True}, {"workers": 4, "threads": True}]
"""Ways of loading that start no process."""


def values(loader):
    return [batch.tolist() for batch in loader]


def stream(length=10):
    return (index for index in range(length))


class Stream:
    """An iterable that begins anew."""

    def __init__(self, length=10):
        self.length = length

    def __iter__(self):
        return stream(self.length)


@pytest.mark.parametrize("options", WORKERS)
@pytest.mark.parametrize("dataset", [range(10), Stream(), list(range(10)), np.arange(10)])
def test_batches_are_those_of_the_dataset_in_its_order(dataset, options):
    loader = DataLoader(dataset, 4, device=CPU, **options)
    assert values(loader) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert (
        values(DataLoader(dataset, 4, drop_last=True, device=CPU, **options)) == values(loader)[:2]
    )
    assert values(DataLoader(dataset, 20, drop_last=True, device=CPU, **options)) == []


def test_a_batch_is_on_the_device_that_was_asked_for_or_the_default_one():
    device = burn.Device("cpu").autodiff()
    (batch,) = DataLoader(Numbers(3), 3, device=device)
    assert batch["array"].device == device
    assert batch["number"].dtype is burn.int64
    with burn.default_device("cpu"):
        loader = DataLoader(range(3), 3)
        assert next(iter(loader)).device == burn.Device("cpu")


def test_the_number_of_batches_is_that_of_a_loop():
    for length, batch_size, drop_last in itertools.product((0, 1, 7, 8), (1, 4), (False, True)):
        loader = DataLoader(range(length), batch_size, drop_last=drop_last, device=CPU)
        assert len(loader) == len(values(loader))


def test_the_length_of_an_iterable_is_an_error_that_says_why():
    with pytest.raises(TypeError, match="does not say how many"):
        len(DataLoader(stream(), device=CPU))


@pytest.mark.parametrize("options", WORKERS)
def test_each_epoch_has_all_examples_in_an_order_of_its_own(options):
    loader = DataLoader(range(50), 8, shuffle=True, seed=3, device=CPU, **options)
    epochs = [values(loader) for _ in range(3)]
    assert all(sorted(itertools.chain(*epoch)) == list(range(50)) for epoch in epochs)
    assert epochs[0] != epochs[1] != epochs[2]
    again = DataLoader(range(50), 8, shuffle=True, seed=3, device=CPU)
    assert [values(again) for _ in range(3)] == epochs


def test_a_seed_is_drawn_if_none_is_given():
    one, other = (DataLoader(range(50), 50, shuffle=True, device=CPU) for _ in range(2))
    assert values(one) != values(other)


@pytest.mark.parametrize("options", WORKERS)
def test_loading_leaves_global_generators_alone(options):
    def state():
        return random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()  # noqa: NPY002 — the global one

    before = state()
    list(DataLoader(Numbers(5), shuffle=True, transform=lambda x: rng().normal(), **options))
    assert state() == before


def test_global_generators_are_seeded_for_each_batch_and_put_back():
    random.seed(1)
    before = random.getstate()
    first = [batch["python"].tolist() for batch in DataLoader(Random(), 4, seed=5, device=CPU)]
    assert random.getstate() == before
    random.seed(2)
    assert first == [
        batch["python"].tolist() for batch in DataLoader(Random(), 4, seed=5, device=CPU)
    ]
    assert first != [
        batch["python"].tolist() for batch in DataLoader(Random(), 4, seed=6, device=CPU)
    ]


@pytest.mark.parametrize("dataset", [range(20), Stream(20)])
def test_random_numbers_depend_on_seed_epoch_and_batch_alone(dataset):
    results = []
    for options in WORKERS:
        loader = DataLoader(dataset, 3, seed=7, transform=noisy, device=CPU, **options)
        results.append([values(loader), values(loader)])
    assert results[0] == results[1] == results[2]
    first, second = results[0]
    assert first != second
    assert len(set(itertools.chain(*first))) == 20


def test_an_iterable_draws_the_same_numbers_whatever_the_workers():
    class Drawn:
        def __iter__(self):
            return (rng().normal() for _ in range(10))

    results = [
        values(DataLoader(Drawn(), 3, seed=7, transform=noisy, device=CPU, **options))
        for options in WORKERS
    ]
    assert results[0] == results[1] == results[2]


def test_there_are_no_random_numbers_where_no_batch_is_loaded():
    with pytest.raises(ArgumentError, match="no batch is being loaded"):
        rng()
    list(DataLoader(range(3), transform=noisy, device=CPU))
    with pytest.raises(ArgumentError, match=r"numpy\.random\.default_rng"):
        rng()


@pytest.mark.parametrize("options", WORKERS)
@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("received", [0, 1, 3, 4])
def test_a_saved_position_gives_exactly_what_comes_next(received, shuffle, options):
    loader = DataLoader(range(11), 3, shuffle=shuffle, seed=1, transform=noisy, device=CPU)
    undisturbed = [values(loader) for _ in range(3)]

    loader = DataLoader(
        range(11), 3, shuffle=shuffle, seed=1, transform=noisy, device=CPU, **options
    )
    values(loader)
    batches = iter(loader)
    begun = [next(batches).tolist() for _ in range(received)]
    state = json.loads(json.dumps(loader.state_dict()))
    assert (state["epoch"], state["batches"]) == (1, received)

    resumed = DataLoader(range(11), 3, shuffle=shuffle, transform=noisy, device=CPU)
    resumed.load_state_dict(state)
    assert resumed.state_dict() == state
    assert [begun + values(resumed), values(resumed)] == undisturbed[1:]


def test_examples_before_a_saved_position_are_not_loaded():
    loaded = []
    loader = DataLoader(range(100), 10, transform=loaded.append, seed=0, device=CPU)
    state = loader.state_dict() | {"batches": 9}
    loader.load_state_dict(state)
    list(loader)
    assert len(loaded) == 10


@pytest.mark.parametrize("options", WORKERS)
def test_an_iterable_is_resumed_by_its_own_state_or_by_skipping(options):
    def loader(dataset):
        return DataLoader(dataset, 3, seed=1, transform=noisy, device=CPU, **options)

    for make in (Endless, Stream):
        undisturbed = [batch.tolist() for batch in itertools.islice(loader(make()), 3)]
        first = loader(make())
        batches = iter(first)
        begun = [next(batches).tolist() for _ in range(2)]
        state = first.state_dict()
        if make is Endless:
            assert state["dataset"] == {"next": 6}
        first.close()
        resumed = loader(make())
        resumed.load_state_dict(state)
        assert [*begun, next(iter(resumed)).tolist()] == undisturbed


def test_an_iterable_is_told_the_epoch():
    class Told(Stream):
        epochs = ()

        def set_epoch(self, epoch):
            self.epochs = (*self.epochs, epoch)

    dataset = Told()
    loader = DataLoader(dataset, 5, device=CPU)
    values(loader), values(loader)
    assert dataset.epochs == (0, 1)


@pytest.mark.parametrize(
    ("changed", "text"),
    [
        ({"batch_size": 4}, "batch_size is 3 in the state, and 4 here"),
        ({"dataset": range(12)}, "length is 11"),
        ({"seed": 2}, "seed is 1"),
        ({"shuffle": False}, "shuffle is True"),
        ({"drop_last": True}, "drop_last is False"),
    ],
)
def test_a_position_of_another_loader_is_refused(changed, text):
    options = {"dataset": range(11), "batch_size": 3, "seed": 1, "shuffle": True, "device": CPU}
    state = DataLoader(**options).state_dict()
    loader = DataLoader(**options | changed)
    with pytest.raises(ArgumentError, match=text):
        loader.load_state_dict(state)
    assert loader.state_dict()["batches"] == 0


@pytest.mark.parametrize(
    "damage",
    [
        {"epoch": -1},
        {"epoch": "1"},
        {"batches": 1.5},
        {"batches": 5},
        {"batches": None},
        {"seed": True},
    ],
)
def test_a_damaged_position_is_refused(damage):
    loader = DataLoader(range(11), 3, device=CPU)
    with pytest.raises((ArgumentError, OperandTypeError), match="load_state_dict"):
        loader.load_state_dict(loader.state_dict() | damage)
    for wrong in (None, [], {}, {"epoch": 1}, "state"):
        with pytest.raises(ArgumentError, match="no state of a DataLoader"):
            loader.load_state_dict(wrong)


@pytest.mark.parametrize("options", WORKERS)
def test_a_loop_after_one_that_was_left_is_the_next_epoch(options):
    loader = DataLoader(range(40), 4, shuffle=True, seed=1, device=CPU, **options)
    whole = [values(loader) for _ in range(3)]
    loader = DataLoader(range(40), 4, shuffle=True, seed=1, device=CPU, **options)
    for batch in loader:
        assert batch.tolist() == whole[0][0]
        break
    assert loader.epoch == 0
    batches = iter(loader)
    next(batches)
    assert loader.epoch == 1
    batches = None
    assert values(loader) == whole[2]
    assert loader.epoch == 3


@pytest.mark.parametrize("options", WORKERS)
def test_two_loops_at_once_are_two_epochs(options):
    loader = DataLoader(range(40), 4, shuffle=True, seed=1, device=CPU, **options)
    whole = [values(loader) for _ in range(2)]
    loader = DataLoader(range(40), 4, shuffle=True, seed=1, device=CPU, **options)
    pairs = list(zip(loader, loader, strict=True))
    assert [pair.tolist() for pair, _ in pairs] == whole[0]
    assert [other.tolist() for _, other in pairs] == whole[1]
    assert loader.epoch == 2


def test_a_loader_inside_a_loop_of_itself_or_of_another():
    inner = DataLoader(range(4), 2, workers=1, threads=True, device=CPU)
    outer = DataLoader(
        range(2), transform=lambda x: [batch.tolist() for batch in inner], device=CPU
    )
    assert len(list(outer)) == 2
    assert inner.epoch == 2
    assert sum(1 for _ in inner for _ in inner) == 4


@pytest.mark.parametrize("options", WORKERS)
def test_several_threads_share_a_loader(options):
    loader = DataLoader(range(100), 4, device=CPU, **options)
    results = []
    threads = [threading.Thread(target=lambda: results.append(values(loader))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [values(DataLoader(range(100), 4, device=CPU))] * 4


@pytest.mark.parametrize("options", WORKERS)
def test_an_exception_arrives_with_its_type_and_example_and_the_loop_can_go_on(options):
    loader = DataLoader(Failing(KeyError("five")), 2, device=CPU, **options)
    batches = iter(loader)
    assert [next(batches).tolist() for _ in range(2)] == [[0, 1], [2, 3]]
    with pytest.raises(KeyError, match="five") as caught:
        next(batches)
    assert "Example 5 was being loaded." in caught.value.__notes__
    assert loader.state_dict()["batches"] == 2
    assert next(batches).tolist() == [6, 7]
    assert loader.state_dict()["batches"] == 4
    with pytest.raises(KeyError):
        list(loader)


@pytest.mark.parametrize("options", WORKERS)
def test_a_stop_iteration_of_a_dataset_does_not_end_the_loop(options):
    with pytest.raises(RuntimeError, match="StopIteration was raised while batch 2"):
        list(DataLoader(Failing(StopIteration()), 2, device=CPU, **options))
    failing = Failing(StopIteration())
    with pytest.raises(RuntimeError, match="StopIteration"):
        list(DataLoader(range(10), 2, transform=failing.__getitem__, device=CPU, **options))


def test_a_dataset_that_gives_another_number_of_examples_is_an_error():
    class Batched(Numbers):
        def __getitems__(self, indices):
            return (index for index in indices if index != 3)

    batches = iter(DataLoader(Batched(), 3, device=CPU))
    assert next(batches).tolist() == [0, 1, 2]
    with pytest.raises(ArgumentError, match="gave 2 examples for 3 indices"):
        next(batches)


@pytest.mark.parametrize("options", WORKERS)
def test_an_exception_of_an_iterable_arrives(options):
    def broken():
        yield from range(5)
        raise OSError("the disk is gone")

    batches = iter(DataLoader(broken(), 2, device=CPU, **options))
    assert [next(batches).tolist() for _ in range(2)] == [[0, 1], [2, 3]]
    with pytest.raises(OSError, match="the disk is gone"):
        next(batches)
    with pytest.raises(StopIteration):
        next(batches)


@pytest.mark.parametrize("options", WORKERS)
def test_an_iterator_that_has_ended_cannot_be_gone_through_again(options):
    loader = DataLoader(stream(), 5, device=CPU, **options)
    assert values(loader) == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]
    with pytest.raises(ArgumentError, match="gives its examples once"):
        values(loader)


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"batch_size": 0}, ArgumentError, "batch_size is 0"),
        ({"batch_size": 1.5}, OperandTypeError, "batch_size must be an integer"),
        ({"workers": -1}, ArgumentError, "workers is -1"),
        ({"prefetch": 0}, ArgumentError, "prefetch is 0"),
        ({"shuffle": "yes"}, OperandTypeError, "shuffle must be True or False"),
        ({"seed": "1"}, OperandTypeError, "seed must be an integer"),
        ({"collate": 3}, OperandTypeError, "collate must be a function"),
        ({"transform": "x"}, OperandTypeError, "transform must be a function"),
        ({"device": "nonsense"}, burn.DeviceUnavailableError, "nonsense"),
        ({"dataset": 3}, OperandTypeError, "neither a sequence nor an iterable"),
        ({"dataset": {"train": [1]}}, OperandTypeError, "a mapping"),
        ({"dataset": np.array(3)}, OperandTypeError, "an array of no axis"),
        ({"dataset": burn.asarray(3)}, OperandTypeError, "an array of no axis"),
        ({"dataset": stream(), "shuffle": True}, ArgumentError, "is an iterable"),
    ],
)
def test_arguments_are_checked_when_a_loader_is_made(arguments, error, text):
    with pytest.raises(error, match=text):
        DataLoader(**{"dataset": range(3)} | arguments)


def test_datasets_of_torch_are_taken_as_they_are():
    class Torch(torch.utils.data.IterableDataset):
        def __iter__(self):
            return stream(5)

        def __len__(self):
            return 5

    loader = DataLoader(Torch(), 2, device=CPU)
    assert values(loader) == [[0, 1], [2, 3], [4]]
    assert len(loader) == 3
    tensors = torch.utils.data.TensorDataset(torch.arange(5.0), torch.arange(5))
    subset = torch.utils.data.Subset(tensors, [4, 2, 0])  # it has __getitems__
    x, y = next(iter(DataLoader(subset, 3, device=CPU)))
    assert (x.tolist(), y.tolist()) == ([4.0, 2.0, 0.0], [4, 2, 0])


@pytest.mark.parametrize("dataset", [range(100), Stream(100)])
def test_threads_end_with_the_loader(dataset):
    before = set(threading.enumerate())

    def threads():
        return set(threading.enumerate()) - before

    loader = DataLoader(dataset, 2, workers=3, threads=True, device=CPU)
    batches = iter(loader)
    next(batches)
    assert len(threads()) >= 3
    loader.close()
    for thread in threads():
        thread.join(5)  # one that reads an iterable ends on its own
    assert not threads()
    with pytest.raises(WorkerError, match="closed"):
        next(batches)
    assert len(values(loader)) == 50
    del loader, batches
    gc.collect()
    for thread in threads():
        thread.join(5)
    assert not threads()


def test_a_loop_that_another_thread_closes_is_an_error_and_no_end_of_the_epoch():
    blocked, results = threading.Event(), []

    def wait(index):
        if index == 3:
            blocked.set()
            released.wait()
        return index

    def loop():
        try:
            results.extend(values(loader))
        except WorkerError as error:
            results.append(error)

    released = threading.Event()
    loader = DataLoader(range(10), transform=wait, workers=1, threads=True, device=CPU)
    thread = threading.Thread(target=loop)
    thread.start()
    blocked.wait()
    threading.Timer(0.1, released.set).start()
    loader.close()
    thread.join()
    (error,) = results
    assert "the loop was closed" in str(error)
    assert loader.epoch == 0


def test_seeds_of_any_size_give_orders_of_their_own():
    orders = {
        (seed, epoch): values(loader)
        for seed in (0, 1, 2**32, 2**32 + 1, 2**64 - 1)
        for loader in [DataLoader(range(30), 30, shuffle=True, seed=seed, device=CPU)]
        for epoch in range(3)
    }
    assert len({str(order) for order in orders.values()}) == 15
    assert (
        values(DataLoader(range(30), 30, shuffle=True, seed=-1, device=CPU)) == orders[2**64 - 1, 0]
    )


def test_no_more_is_loaded_ahead_than_was_asked_for():
    loaded = []
    loader = DataLoader(
        range(100), 1, workers=2, prefetch=3, threads=True, transform=loaded.append, device=CPU
    )
    batches = iter(loader)
    next(batches)
    while len(loaded) < 7:
        threading.Event().wait(0.01)
    threading.Event().wait(0.02)
    assert len(loaded) == 7
    loader.close()


def test_a_loader_cannot_be_copied_and_says_what_to_do():
    for way in (copy.deepcopy, pickle.dumps):
        with pytest.raises(OperandTypeError, match="load_state_dict"):
            way(DataLoader(range(3)))


def test_a_loader_says_what_it_is():
    loader = DataLoader(range(3), 2, seed=1, shuffle=True, workers=2)
    assert repr(loader) == "DataLoader(range, batch_size=2, seed=1, shuffle=True, workers=2)"


def test_nothing_warns():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(list(DataLoader(range(10), workers=2, threads=True, device=CPU))) == 10
