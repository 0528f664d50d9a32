"""The generator in native code gives the words of NumPy's."""

import numpy as np
import pytest

from burn_cpu import random

pytest.importorskip("llvmlite")


@pytest.mark.parametrize(
    ("seed", "offset", "blocks"),
    [
        (0, 0, 1000),
        (2**64 - 3, 2**32 - 5, 20_000),
        (12345678901234567890, 2**64 - 7, 100),
        (5, 2**96 - 4, 30),
        (7, 2**128 - 3, 20),
    ],
)
def test_words_are_the_same(monkeypatch, seed, offset, blocks):
    words = random._philox(seed, offset, blocks)
    monkeypatch.setattr(random, "compiler", lambda: None)
    np.testing.assert_array_equal(words, random._philox(seed, offset, blocks))
