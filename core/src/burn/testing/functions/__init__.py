"""Samples of public functions, one module for each family; importing this fills `FUNCTIONS`."""

from burn.testing.functions import (
    arrangement as arrangement,
    creation as creation,
    elementwise as elementwise,
    linear_algebra as linear_algebra,
    manipulation as manipulation,
    matrices as matrices,
    networks as networks,
    reductions as reductions,
    special as special,
    statistical as statistical,
    tensor_methods as tensor_methods,
    windows as windows,
)
