"""Fourier transforms, windows, and transforms of short times."""
