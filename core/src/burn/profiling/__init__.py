"""Profiles: how long each op takes, how much it moves and computes, and which line calls it."""

from burn.profiling.profiles import Profile, profile

__all__ = ["Profile", "profile"]
