"""
Watchdog process: ends all processes of a launch if the launcher is killed, and deletes its
temporary files.

It runs on its own, with the native module at the first path, for the launch with the second id.
Its standard input is a pipe whose other end the launcher holds.
"""

import sys
from importlib.util import module_from_spec, spec_from_file_location

spec = spec_from_file_location('pteros._native', sys.argv[1])
native = module_from_spec(spec)
spec.loader.exec_module(native)
native.run_launch_watchdog(sys.argv[2])
