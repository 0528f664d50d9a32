"""Products by the fastest algorithm, with a library that does nothing in place of cuBLASLt."""

import pytest

from burn_cuda import products
from burn_cuda.products import Products

KEY = ((68, 0, (0, 0)), ((16, 4, 8), (False, True), (16, 8)), (1, (0, 0, 0), False))
BATCH = ((68, 0, (0, 0)), ((16, 4, 8), (False, True), (16, 8)), (3, (1, 2, 3), True))
FACTORS = (64, 72)


class Library:
    """Counts calls; `fails` are those that return a status."""

    def __init__(self, found=2):
        self.found = found
        self.calls = []
        self.fails = set()

    def __getattr__(self, name):
        def call(*arguments):
            self.calls.append(name)
            if name == "cublasLtMatmulAlgoGetHeuristic":
                arguments[-1]._obj.value = self.found
            return int(name in self.fails)

        return call


@pytest.fixture
def library(monkeypatch):
    made = Library()
    monkeypatch.setattr(products, "library", lambda: made)
    return made


def product(times):
    """Products whose timed launches take these times, one after the other."""
    times = iter(times)

    def elapsed(run):
        run()
        return next(times)

    class Space:
        address = 512

    return Products(lambda *_: Space(), lambda: 7, elapsed)


def test_the_fastest_algorithm_is_chosen_once(library):
    made = product([3.0, 3.0, 2.0, 1.0, 4.0, 4.0])
    for _ in range(3):
        assert made.run(KEY, FACTORS, (1, 2, 3))
    assert library.calls.count("cublasLtMatmulAlgoGetHeuristic") == 1
    timed = 2 * (1 + products._TIMED_RUNS)
    assert library.calls.count("cublasLtMatmul") == timed + 3


def test_a_kernel_of_this_plugin_is_used_where_it_is_faster(library):
    launched = []
    own = [lambda: launched.append("slow"), lambda: launched.append("fast")]
    made = product([3.0] * 6 + [4.0] * 3 + [1.0] * 3)
    assert made.run(KEY, FACTORS, (1, 2, 3), own)
    launched.clear()
    before = library.calls.count("cublasLtMatmul")
    assert made.run(KEY, FACTORS, (1, 2, 3), own)
    assert launched == ["fast"]
    assert library.calls.count("cublasLtMatmul") == before


def test_a_bias_and_a_batch_are_described(library):
    made = product([1.0] * 6)
    assert made.run(BATCH, FACTORS, (1, 2, 3, 4))
    assert library.calls.count("cublasLtMatrixLayoutSetAttribute") == 6
    # Both orientations, the epilogue and the address of the bias.
    assert library.calls.count("cublasLtMatmulDescSetAttribute") == 4
    assert made.run(BATCH, FACTORS, (1, 2, 3, 5))
    assert library.calls.count("cublasLtMatmulDescSetAttribute") == 5


def test_without_tuning_the_first_algorithm_is_used_and_nothing_is_timed(library):
    made = product([])
    for _ in range(3):
        assert made.run(KEY, FACTORS, (1, 2, 3), tunes=False)
    assert library.calls.count("cublasLtMatmulAlgoGetHeuristic") == 1
    assert library.calls.count("cublasLtMatmul") == 3


@pytest.mark.parametrize(
    "name", ["cublasLtCreate", "cublasLtMatmulAlgoGetHeuristic", "cublasLtMatmul"]
)
def test_what_the_library_refuses_is_left_to_cublas(library, name):
    library.fails.add(name)
    made = product([1.0] * 6)
    assert not made.run(KEY, FACTORS, (1, 2, 3))
    count = len(library.calls)
    assert not made.run(KEY, FACTORS, (1, 2, 3))
    assert len(library.calls) == count


def test_a_product_that_fails_later_is_left_to_cublas(library):
    made = product([1.0] * 6)
    assert made.run(KEY, FACTORS, (1, 2, 3))
    library.fails.add("cublasLtMatmul")
    assert not made.run(KEY, FACTORS, (1, 2, 3))
    library.fails.clear()
    assert not made.run(KEY, FACTORS, (1, 2, 3))


def test_without_the_library_nothing_is_taken(monkeypatch):
    monkeypatch.setattr(products, "library", lambda: None)
    assert not product([]).run(KEY, FACTORS, (1, 2, 3))
