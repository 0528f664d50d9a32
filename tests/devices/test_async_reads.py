"""Reads that are awaited: the event loop goes on, errors arrive in the task that waits."""

import asyncio
import os
import threading

import pytest

import burn
from burn.testing import MockDevice, mock_backend
from burn.testing.mocks import MockBackend

PATIENCE = 20.0
"""Seconds after which a read that waits for the loop has blocked it."""


@pytest.fixture
def units():
    """Two devices."""
    with burn.registered(mock_backend("mock", [MockDevice("unit"), MockDevice("unit")])):
        yield burn.Device("mock:0"), burn.Device("mock:1")


@pytest.fixture
def gate(monkeypatch):
    """An event that every read of a mock device waits for."""
    opened = threading.Event()
    read = MockBackend.to_data

    def to_data(self, x):
        assert opened.wait(PATIENCE), "the read has blocked the event loop"
        return read(self, x)

    monkeypatch.setattr(MockBackend, "to_data", to_data)
    yield opened
    opened.set()


def test_the_event_loop_runs_while_a_device_works(units, gate):
    x = burn.asarray([1.0, 2.0], device=units[0])
    total = x.sum()

    async def main():
        reads = asyncio.gather(
            x.data_async(),
            total.item_async(),
            burn.Transaction().register(x).register(total).execute_async(),
            asyncio.create_task(x.data_async()),
        )
        for _ in range(5):
            await asyncio.sleep(0)
        assert not reads.done()
        gate.set()
        return await reads

    data, number, several, again = asyncio.run(main())
    assert data.tolist() == again.tolist() == [1.0, 2.0]
    assert number == 3.0
    assert [tensor.tolist() for tensor in several] == [[1.0, 2.0], 3.0]


def test_a_read_is_of_the_value_at_the_time_of_the_call(units, gate):
    x = burn.asarray([1.0, 2.0], device=units[0])
    part = x[:1]

    async def main():
        reads = [x.data_async(), part.item_async(), burn.Transaction().register(x).execute_async()]
        x[0] = 7.0
        gate.set()
        return await asyncio.gather(*reads)

    data, number, (same,) = asyncio.run(main())
    assert data.tolist() == same.tolist() == [1.0, 2.0]
    assert number == 1.0
    assert x.tolist() == [7.0, 2.0]


def test_many_reads_take_one_thread_of_each_device(units, gate):
    before = threading.active_count()
    tensors = [burn.full((2,), float(n), device=units[n % 2]) for n in range(200)]

    async def main():
        reads = asyncio.gather(*[x.data_async() for x in tensors])
        await asyncio.sleep(0.05)
        assert threading.active_count() <= before + 2
        gate.set()
        found = await reads
        transaction = burn.Transaction()
        for x in tensors:
            transaction.register(x)
        return found, await transaction.execute_async()

    for found in asyncio.run(main()):
        assert [data.tolist() for data in found] == [[float(n)] * 2 for n in range(200)]


def test_a_task_that_is_cancelled_leaves_other_reads_alone(units, gate):
    x = burn.ones(2, device=units[0])

    async def main():
        slow = asyncio.create_task(x.data_async())
        queued = asyncio.create_task(x.sum().item_async())
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(x.data_async(), 0.01)
        slow.cancel()
        queued.cancel()
        with pytest.raises(asyncio.CancelledError):
            await slow
        gate.set()
        return await x.sum().item_async()

    assert asyncio.run(main()) == 2.0


def test_an_error_arrives_in_the_task_that_waits_for_it():
    devices = [MockDevice("unit", fault="the unit reports a memory fault"), MockDevice("unit")]
    with burn.registered(mock_backend("mock", devices)):
        good = burn.ones(2, device="mock:1") + 1

        async def main():
            bad = burn.ones(2, device="mock:0") + 1
            first = await asyncio.gather(
                bad.data_async(), good.data_async(), good.item_async(), return_exceptions=True
            )
            bad = bad + 1
            both = burn.Transaction().register(bad).register(good).execute_async()
            return [*first, *await asyncio.gather(both, return_exceptions=True)]

        failed, data, several, transaction = asyncio.run(main())
    assert data.tolist() == [2.0, 2.0]
    for error in (failed, transaction):
        assert isinstance(error, burn.ExecutionError)
        assert "the unit reports a memory fault" in str(error)
    assert str(failed).startswith("data_async(float32[2]): ")
    assert str(transaction).startswith("Transaction.execute_async: ")
    assert isinstance(several, burn.ShapeError)


def test_an_index_out_of_range_names_its_operation_where_it_is_awaited():
    device = burn.Device("cpu")
    for name in ("opencl", "torch"):
        device = next(iter(burn.Device.enumerate(name)), device)

    async def main():
        x = burn.take(burn.arange(3, device=device), burn.asarray([5], device=device))
        return await x.data_async()

    with pytest.raises(IndexError, match=r"take\("):
        asyncio.run(main())


def test_a_read_without_asyncio_says_so():
    x = burn.ones(1, device="cpu")
    transaction = burn.Transaction().register(x).register(burn.ones(1, device="cpu"))
    for read in (x.data_async(), x.item_async(), transaction.execute_async()):
        with pytest.raises(burn.UnsupportedOpError, match="no event loop of asyncio"):
            read.send(None)


def test_every_thread_may_have_an_event_loop_of_its_own(units):
    x = burn.arange(1000, device=units[0])
    found = []

    async def main():
        return sum(await asyncio.gather(*[(x[n:]).max().item_async() for n in range(20)]))

    threads = [threading.Thread(target=lambda: found.append(asyncio.run(main()))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [20 * 999] * 4


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own(units):
    x = burn.ones(2, device=units[0])
    assert asyncio.run(_sum_of(x)) == 2.0
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if asyncio.run(_sum_of(x)) == 2.0 else 2
        finally:
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


async def _sum_of(x):
    return await x.sum().item_async()
