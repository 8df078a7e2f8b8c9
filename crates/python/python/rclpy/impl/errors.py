"""Exceptions of the implementation, below all other modules of rclpy."""

from __future__ import annotations

from pteros._native import (
    InvalidHandle, NodeNameNonExistentError, RCLError, RCLInvalidROSArgsError,
    UnknownROSArgsError, UnsupportedEventTypeError,
)

__all__ = [
    'InvalidHandle', 'NodeNameNonExistentError', 'RCLError', 'RCLInvalidROSArgsError',
    'UnknownROSArgsError', 'UnsupportedEventTypeError',
]
