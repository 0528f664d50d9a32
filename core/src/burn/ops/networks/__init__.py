"""Ops of networks: attention, normalization, losses, recurrence."""
