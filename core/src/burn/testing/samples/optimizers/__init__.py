"""Samples of steps of optimizers."""
