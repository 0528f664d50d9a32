"""Samples of elementwise ops."""
