"""Ops of each element by itself."""
