"""Tests of the pure Python packages on an in-memory native module."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [HERE, os.path.join(os.path.dirname(HERE), 'python')]

import fake_native  # noqa: E402

fake_native.install()
