"""Ops of matrices, and of signals."""
