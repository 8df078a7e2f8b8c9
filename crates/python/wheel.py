#!/usr/bin/env python3
"""Builds the wheel from the native module and the Python packages.

`cargo xtask wheel` calls it. A wheel is a zip file with the packages, their metadata and
a list of checksums (PEP 427), so nothing but Python's own library is needed.
"""

import argparse
import base64
import hashlib
import pathlib
import platform
import stat
import sys
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
DEFINITIONS = HERE.parent / 'interfaces' / 'definitions'
KINDS = ('msg', 'srv', 'action')
# The same files give the same wheel.
DATE = (2026, 1, 1, 0, 0, 0)

METADATA = '''\
Metadata-Version: 2.1
Name: pteros
Version: {version}
Summary: rclpy without a ROS 2 installation
License: Apache-2.0
Requires-Python: >=3.10
Classifier: Programming Language :: Python :: 3
Classifier: Operating System :: POSIX :: Linux
Provides-Extra: numpy
Requires-Dist: numpy; extra == 'numpy'
Description-Content-Type: text/markdown

Runs programs that were written for rclpy, and talks to every ROS 2 and DDS system.
'''

TAGS = '''\
Wheel-Version: 1.0
Generator: pteros
Root-Is-Purelib: false
Tag: {tag}
'''


class Wheel:
    """A wheel that is being written."""

    def __init__(self, path):
        self._zip = zipfile.ZipFile(path, 'w', zipfile.ZIP_DEFLATED)
        self._records = []

    def add(self, name, data, is_executable=False):
        """Add a file."""
        info = zipfile.ZipInfo(name, DATE)
        info.compress_type = zipfile.ZIP_DEFLATED
        mode = 0o755 if is_executable else 0o644
        info.external_attr = (stat.S_IFREG | mode) << 16
        self._zip.writestr(info, data)
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b'=').decode()
        self._records.append(f'{name},sha256={digest},{len(data)}')

    def close(self, record):
        """Add the list of checksums and end the file."""
        text = '\n'.join([*self._records, f'{record},,', ''])
        info = zipfile.ZipInfo(record, DATE)
        info.external_attr = (stat.S_IFREG | 0o644) << 16
        self._zip.writestr(info, text)
        self._zip.close()


def interface_modules():
    """Give the modules of all interface packages, with their text."""
    for package in sorted(path for path in DEFINITIONS.iterdir() if path.is_dir()):
        kinds = [kind for kind in KINDS if (package / kind).is_dir()]
        if not kinds:
            continue
        yield f'{package.name}/__init__.py', f'"""Interfaces of {package.name}."""\n'
        for kind in kinds:
            yield f'{package.name}/{kind}/__init__.py', (
                f'"""Classes of {package.name}/{kind}, made when they are first used."""\n\n'
                'from pteros._interfaces import install\n\n'
                'install(__name__, globals())\n')


def main():
    """Build the wheel and print its path."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--library', required=True, help='the built native module')
    parser.add_argument('--command', help='the built command `pteros`; left out without it')
    parser.add_argument('--version', required=True)
    parser.add_argument('--out', required=True, help='the folder for the wheel')
    options = parser.parse_args()
    out = pathlib.Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    tag = f'cp310-abi3-linux_{platform.machine()}'
    path = out / f'pteros-{options.version}-{tag}.whl'
    wheel = Wheel(path)
    sources = HERE / 'python'
    for source in sorted(sources.rglob('*')):
        if source.is_file() and '__pycache__' not in source.parts:
            wheel.add(source.relative_to(sources).as_posix(), source.read_bytes())
    for name, text in interface_modules():
        wheel.add(name, text.encode())
    wheel.add('pteros/_native.abi3.so', pathlib.Path(options.library).read_bytes(), True)
    if options.command:
        data = pathlib.Path(options.command).read_bytes()
        wheel.add(f'pteros-{options.version}.data/scripts/pteros', data, True)
    info = f'pteros-{options.version}.dist-info'
    wheel.add(f'{info}/METADATA', METADATA.format(version=options.version).encode())
    wheel.add(f'{info}/WHEEL', TAGS.format(tag=tag).encode())
    wheel.close(f'{info}/RECORD')
    print(path)


if __name__ == '__main__':
    sys.exit(main())
