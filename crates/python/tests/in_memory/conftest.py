"""Tests of the pure Python packages on an in-memory native module, in a process of their own."""

import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
CRATE = os.path.dirname(os.path.dirname(HERE))
sys.path[:0] = [HERE, os.path.join(CRATE, 'python')]

import fake_native  # noqa: E402

fake_native.install()
