"""Patches of images against PyTorch; what cutting and putting together refuse."""

import pytest
import torch
from torch.nn import functional

import burn
from burn.nn import functional as F
from windows_against_torch import compare, normal, ones, zeros_around

PATCHES = [
    {"kernel_size": 2},
    {"kernel_size": (3, 2), "padding": (1, 0)},
    {"kernel_size": 3, "stride": 2, "padding": 2},
    {"kernel_size": (2, 3), "dilation": 2, "padding": 1},
    {"kernel_size": 2, "stride": (3, 4)},
    {"kernel_size": 1, "padding": 2},
    {"kernel_size": (6, 7)},
]


@pytest.mark.parametrize("options", PATCHES, ids=str)
def test_patches_agree_with_torch(options):
    x = normal(2, 3, 6, 7)
    compare(lambda x: F.unfold4d(x, **options), lambda x: functional.unfold(x, **options), x)
    columns = functional.unfold(torch.from_numpy(x), **options)
    compare(
        lambda y: F.fold4d(y, (6, 7), **options),
        lambda y: functional.fold(y, (6, 7), **options),
        normal(*columns.shape),
    )


def test_one_sided_padding_of_patches_is_that_of_a_padded_image():
    x = normal(2, 3, 6, 7)
    pairs = ((1, 0), (0, 2))
    compare(
        lambda x: F.unfold4d(x, 3, padding=pairs),
        lambda x: functional.unfold(zeros_around(x, pairs), 3),
        x,
    )


X = ones(2, 4, 5, 6)

REFUSED = {
    "unbatched patches": (lambda: F.unfold4d(ones(3, 4, 5), 2), burn.ShapeError, "unfold4d"),
    "patches too large": (lambda: F.unfold4d(X, 7), burn.ShapeError, "no window fits"),
    "rows of columns": (lambda: F.fold4d(ones(1, 5, 4), 3, 2), burn.ShapeError, "multiple"),
    "number of columns": (
        lambda: F.fold4d(ones(1, 4, 5), 3, 2),
        burn.ShapeError,
        r"5 columns where images of \(3, 3\) have 2 \* 2 windows",
    ),
    "columns with four axes": (lambda: F.fold4d(X, 3, 2), burn.ShapeError, "columns of shape"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused_says_why(case):
    call, error, message = REFUSED[case]
    with pytest.raises(error, match=message):
        call()
