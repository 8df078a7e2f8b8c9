"""Constants that several modules share."""

S_TO_NS: int = 1_000_000_000
"""Nanoseconds of one second."""
