"""Samples of public functions, one module for each family; importing this fills `FUNCTIONS`."""

from burn.testing.functions import (
    arrangement as arrangement,
    covariance as covariance,
    creation as creation,
    derived as derived,
    elementwise as elementwise,
    histograms as histograms,
    linear_algebra as linear_algebra,
    manipulation as manipulation,
    matrices as matrices,
    nan_statistics as nan_statistics,
    networks as networks,
    ordering as ordering,
    quantiles as quantiles,
    reductions as reductions,
    scattering as scattering,
    sequences as sequences,
    special as special,
    statistical as statistical,
    tensor_methods as tensor_methods,
    windows as windows,
)

derived.attach()
