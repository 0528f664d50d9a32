"""Ops of windows that slide over images and signals, and of points between their elements."""
