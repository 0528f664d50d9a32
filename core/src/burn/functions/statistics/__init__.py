"""Statistics beyond single reductions: quantiles, histograms, covariance."""
