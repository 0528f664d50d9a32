"""Profiles: how long each op takes, how much it moves and computes, and which line calls it."""

from burn.profiling.profiles import Profile, profile
from burn.profiling.summary import Summary

__all__ = ["Profile", "Summary", "profile"]
