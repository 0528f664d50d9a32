"""Compilation: passes over a program, its fusion into kernels, and what runs it on a device."""

from __future__ import annotations

__all__: list[str] = []
