"""Samples of ops of windows over images and signals."""
