#!/usr/bin/env python3
"""Builds the wheel from the native module and the Python packages.

`cargo xtask wheel` calls it. A wheel is a zip file with the packages, their metadata and
a list of checksums (PEP 427), so nothing but Python's own library is needed.
"""

import argparse
import base64
import hashlib
import pathlib
import stat
import sys
import zipfile

import manylinux
import stubs

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
Keywords: ros2,rclpy,robotics,dds,middleware
Project-URL: Repository, https://github.com/pteros/pteros
Requires-Python: >=3.10
Classifier: License :: OSI Approved :: Apache Software License
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: Python :: 3
Classifier: Programming Language :: Python :: 3 :: Only
Classifier: Programming Language :: Python :: Implementation :: CPython
Classifier: Programming Language :: Rust
Classifier: Topic :: Software Development :: Libraries
Classifier: Typing :: Typed
Provides-Extra: numpy
Requires-Dist: numpy; extra == 'numpy'
Description-Content-Type: text/markdown

Pteros runs programs that were written for rclpy, and talks to every ROS 2 and DDS system. No
ROS 2 is installed, and nothing is sourced.

```python
import rclpy
from rclpy.node import Node
from std_msgs.msg import String

rclpy.init()
node = Node('talker')
publisher = node.create_publisher(String, 'chatter', 10)
node.create_timer(1.0, lambda: publisher.publish(String(data='Hello World')))
rclpy.spin(node)
```

The wheel has rclpy, the standard message packages, tf2_ros, message_filters, launch, launch_ros,
and the command `pteros`. `python -m pteros doctor` checks the host and the network, and says whose
rclpy is imported. Fixed arrays of numbers are numpy arrays where numpy is installed.
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
        yield f'{package.name}/__init__.py', (
            f'"""Interfaces of {package.name}."""\n\n'
            'from _pteros_import_hook import kind_getter\n\n'
            '__getattr__ = kind_getter(__name__)\n')
        for kind in kinds:
            yield f'{package.name}/{kind}/__init__.py', (
                f'"""Classes of {package.name}/{kind}, made when they are first used."""\n\n'
                'from pteros._interfaces import install\n\n'
                'install(__name__, globals())\n')
            definitions = {
                path.stem: path.read_text() for path in (package / kind).glob(f'*.{kind}')}
            yield f'{package.name}/{kind}/__init__.pyi', stubs.stub(
                package.name, kind, definitions)
        yield f'{package.name}/py.typed', ''


def remove_others(folder, path):
    """Remove wheels of other versions or tags: `pip install FOLDER/pteros-*.whl` takes one."""
    for other in folder.glob('pteros-*.whl'):
        if other != path:
            other.unlink()


def main():
    """Build the wheel and print its path."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--library', required=True, help='the built native module')
    parser.add_argument('--command', help='the built command `pteros`; left out without it')
    parser.add_argument('--version', required=True)
    parser.add_argument(
        '--glibc-max', help='fail if the files need a newer glibc, such as 2.28')
    parser.add_argument('--out', required=True, help='the folder for the wheel')
    options = parser.parse_args()
    out = pathlib.Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    binaries = {'the native module': pathlib.Path(options.library).read_bytes()}
    if options.command:
        binaries['the command'] = pathlib.Path(options.command).read_bytes()
    try:
        platform_tag = manylinux.platform_tag(binaries, options.glibc_max)
    except manylinux.PolicyError as error:
        if options.glibc_max:
            parser.exit(1, f'error: {error}\n')
        print(f'{error}; so the wheel is for systems like this one', file=sys.stderr)
        try:
            platform_tag = manylinux.linux_tag(binaries['the native module'])
        except manylinux.PolicyError as error:
            parser.exit(1, f'error: the native module {error}\n')
    tag = f'cp310-abi3-{platform_tag}'
    path = out / f'pteros-{options.version}-{tag}.whl'
    wheel = Wheel(path)
    sources = HERE / 'python'
    for source in sorted(sources.rglob('*')):
        if source.is_file() and '__pycache__' not in source.parts:
            wheel.add(source.relative_to(sources).as_posix(), source.read_bytes())
    for name, text in interface_modules():
        wheel.add(name, text.encode())
    wheel.add('pteros/_native.abi3.so', binaries['the native module'], True)
    if options.command:
        name = f'pteros-{options.version}.data/scripts/pteros'
        wheel.add(name, binaries['the command'], True)
    info = f'pteros-{options.version}.dist-info'
    wheel.add(f'{info}/METADATA', METADATA.format(version=options.version).encode())
    wheel.add(f'{info}/WHEEL', TAGS.format(tag=tag).encode())
    wheel.add(f'{info}/LICENSE', (HERE.parents[1] / 'LICENSE').read_bytes())
    wheel.close(f'{info}/RECORD')
    remove_others(out, path)
    print(path)


if __name__ == '__main__':
    sys.exit(main())
