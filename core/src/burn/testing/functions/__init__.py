"""Samples of public functions, one module for each family; importing this fills `FUNCTIONS`."""

from burn.testing.functions import statistical as statistical
