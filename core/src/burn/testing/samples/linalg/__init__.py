"""Samples of ops of matrices, and of signals."""
