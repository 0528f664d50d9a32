"""Ops of whole arrays: creation, layout, indexing, reductions, scans, sorting."""
