"""
Print the entry points of folders with a `setup.py`: package, name, module, function.

The files are executed, with a module in place of setuptools that prints.
"""

import os
import runpy
import sys
import types

SETUPTOOLS = types.ModuleType('setuptools')


def setup(name, entry_points=None, **_):
    for script in (entry_points or {}).get('console_scripts', []):
        program, function = script.split('=')
        print(name, program.strip(), *function.strip().split(':'))


SETUPTOOLS.setup = setup
SETUPTOOLS.find_packages = lambda *_, **__: []
sys.modules['setuptools'] = SETUPTOOLS
for folder in sys.argv[1:]:
    os.chdir(folder)
    runpy.run_path('setup.py', run_name='__main__')
