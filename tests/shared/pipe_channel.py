"""PipeChannel: runs the operations of a router in a second process, over pipes.

All that crosses is bytes of `burn.ir.codec`: frames that begin with their length. The program runs
this file as the second process, whose standard input and output are the pipes.
"""

import collections
import itertools
import os
import struct
import subprocess
import sys
import threading

from burn import Device
from burn.dtype import DType, DTypeUsage
from burn.ir import Drop, OperationIr
from burn.ir.codec import decode, encode
from burn.router import RunnerChannel, RunnerClient

_LENGTH = struct.Struct("<Q")


def send(stream, message):
    frame = encode(message)
    stream.write(_LENGTH.pack(len(frame)) + frame)
    stream.flush()
    return len(frame)


def receive(stream):
    head = stream.read(_LENGTH.size)
    return decode(stream.read(_LENGTH.unpack(head)[0])) if len(head) == _LENGTH.size else None


class PipeClient(RunnerClient):
    """Queues operations, and sends them before a question, or when there are many."""

    MOST = 64

    def __init__(self, device, spelling, python=sys.executable):
        self.device = device
        self.sent = self.round_trips = 0
        self.next_id = itertools.count().__next__
        self._queue = collections.deque()
        self._lock = threading.RLock()
        self._process = subprocess.Popen(
            [python, __file__, spelling], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def close(self):
        self._process.stdin.close()
        self._process.stdout.close()
        assert self._process.wait(30) == 0

    def register(self, operation):
        self._put(operation)

    def register_data(self, tensor, data):
        self._put(["data", tensor, data])
        self.flush()  # the data may change afterwards

    def drop(self, id):
        self._queue.append(Drop(id))  # atomic: a collection of garbage may call it anywhere

    def read(self, tensor):
        return self.read_all([tensor])[0]

    def read_all(self, tensors):
        return self._ask("read", list(tensors))

    def shapes(self, tensors):
        return [tuple(shape) for shape in self._ask("shapes", list(tensors))]

    def flush(self):
        with self._lock:
            messages = [self._queue.popleft() for _ in range(len(self._queue))]
            if messages:
                self.sent += send(self._process.stdin, messages)

    def sync(self):
        self._ask("sync")

    def seed(self, seed):
        self._put(["seed", seed])

    def dtype_usage(self, dtype):
        return DTypeUsage(self._ask("dtype_usage", dtype.name))

    def memory_cleanup(self):
        self._ask("memory_cleanup")

    def count(self):
        """Number of tensors that the second process has."""
        return self._ask("count")

    def _put(self, message):
        self._queue.append(message)
        if len(self._queue) >= self.MOST:
            self.flush()

    def _ask(self, *question):
        with self._lock:
            self._queue.append(list(question))
            self.flush()
            self.round_trips += 1
            answer = receive(self._process.stdout)
        if isinstance(answer, BaseException):
            raise answer
        return answer


class PipeChannel(RunnerChannel):
    """A second process for each of some devices."""

    def __init__(self, *spellings):
        self.spellings = spellings
        self.clients = []

    def name(self, device):
        return "pipe"

    def device_count(self, type_id):
        return len(self.spellings) if type_id == 0 else 0

    def init_client(self, device):
        client = PipeClient(device, self.spellings[device.index_id])
        self.clients.append(client)
        return client

    def get_tensor_handle(self, tensor, client):
        return client.read(tensor)

    def register_tensor(self, tensor, handle, client):
        client.register_data(tensor, handle)

    def change_client_backend(self, tensor, source, target):
        made = tensor._replace(id=target.next_id())
        self.register_tensor(made, self.get_tensor_handle(tensor, source), target)
        return made

    def close(self):
        for client in self.clients:
            client.close()


class Runner:
    """The other end: runs what it receives, and keeps the first error for the next question."""

    def __init__(self, spelling):
        router = Device(f"router/{spelling}").backend
        self.client = router.channel.init_client(Device(f"router/{spelling}").id)
        self.error = None

    def take(self, message, stream):
        if isinstance(message, Drop):
            self.client.drop(message.id)
        elif isinstance(message, OperationIr):
            self.attempt(self.client.register, message)
        else:
            name, *arguments = message
            if name == "data":
                self.attempt(self.client.register_data, *arguments)
            elif name == "seed":
                self.attempt(self.client.seed, *arguments)
            else:
                answer = self.attempt(getattr(self, name), *arguments)
                error, self.error = self.error, None
                send(stream, answer if error is None else error)

    def attempt(self, function, *arguments):
        try:
            return function(*arguments)
        except Exception as error:  # noqa: BLE001 — whatever it is, the other end raises it
            self.error = self.error or error

    def read(self, tensors):
        return self.client.read_all(tensors)

    def shapes(self, tensors):
        return [list(shape) for shape in self.client.shapes(tensors)]

    def sync(self):
        self.client.sync()

    def dtype_usage(self, name):
        return self.client.dtype_usage(DType.of(name)).value

    def memory_cleanup(self):
        self.client.memory_cleanup()

    def count(self):
        return len(self.client.handles)


def main(spelling):
    runner = Runner(spelling)
    stream = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    while (messages := receive(sys.stdin.buffer)) is not None:
        for message in messages:
            runner.take(message, stream)


if __name__ == "__main__":
    main(sys.argv[1])
