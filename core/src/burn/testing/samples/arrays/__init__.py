"""Samples of ops of whole arrays."""
