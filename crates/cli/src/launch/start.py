"""Start of the Python launcher: a user's `json.py` must not replace Python's own."""
import os
import sys

# `python3 -c` puts the current folder first. One that PYTHONPATH names stays, as the last.
here = os.getcwd()
is_named = here in sys.path
sys.path[:] = [path for path in sys.path if path not in ('', here)]
if is_named:
    sys.path.append(here)

import importlib.util  # noqa: E402
import runpy  # noqa: E402

if sys.argv[1:] == ['--probe']:
    sys.exit(importlib.util.find_spec('pteros') is None)
runpy.run_module('pteros.launch', run_name='__main__', alter_sys=True)
