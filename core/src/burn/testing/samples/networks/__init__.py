"""Samples of ops of networks."""
