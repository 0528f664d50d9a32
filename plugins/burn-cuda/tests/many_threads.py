"""A program of 16 threads on one GPU, each with work of its own: see test_gpu.py.

Every thread compares with NumPy in each round; the program ends with the number of comparisons, or
with the first error.
"""

import sys
import threading

import numpy as np

import burn
from burn.nn import functional as F

THREADS, ROUNDS = 16, 12


def work(device, generator, rounds):
    """Operations of each kind of kernel, of sizes that differ between threads."""
    for _ in range(rounds):
        rows, columns = generator.integers(20, 300, 2)
        a = generator.standard_normal((rows, columns)).astype(np.float32)
        whole = generator.integers(-1000, 1000, (rows, columns))
        indices = generator.integers(0, rows, 3 * rows)
        x, y = burn.asarray(a, device=device), burn.asarray(whole, device=device)
        index_tensor = burn.asarray(indices, device=device)
        product = a.astype(np.float64) @ a.T.astype(np.float64)
        np.testing.assert_allclose((x @ x.T).numpy(), product, rtol=1e-4, atol=1e-2)
        np.testing.assert_array_equal(burn.cumulative_sum(y, axis=0).numpy(), whole.cumsum(0))
        np.testing.assert_array_equal(burn.sort(x, axis=1).numpy(), np.sort(a, axis=1))
        np.testing.assert_array_equal(burn.take(y, index_tensor, axis=0).numpy(), whole[indices])
        np.testing.assert_array_equal(y.sum(axis=0).numpy(), whole.sum(0))
        powers = np.exp(a - a.max(1, keepdims=True))
        powers /= powers.sum(1, keepdims=True)
        np.testing.assert_allclose(F.softmax(x, axis=1).numpy(), powers, rtol=1e-4, atol=1e-7)
        tracked = burn.asarray(a, device=device.autodiff()).require_grad()
        slope = tracked.grad((tracked * tracked).sum().backward())
        np.testing.assert_array_equal(slope.numpy(), 2 * a)


def main(name, seed):
    """Run all threads; the exit status is that of the worst of them."""
    device = burn.Device(name)
    failed, done = [], []

    def run(number):
        try:
            work(device, np.random.default_rng([seed, number]), ROUNDS)
            done.append(number)
        except BaseException as error:  # noqa: BLE001 — any failure: the parent process reads it
            failed.append(f"thread {number}: {type(error).__name__}: {error}")

    threads = [threading.Thread(target=run, args=(n,), daemon=True) for n in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(45)
    for line in failed:
        sys.stderr.write(f"{line}\n")
    sys.stdout.write(f"{len(done)} threads of {THREADS}\n")
    return int(len(done) != THREADS)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[2])))
