#!/usr/bin/env python3
"""Evaluates the Python launch files of checked-out repositories, and counts the refused ones.

It runs on a Python with the wheel `pteros`. Each folder is a repository. Packages in the
folders count as installed: their share folder is their source folder, and their Python
packages can be imported. Packages that are not in the folders are empty folders. Every file
with `generate_launch_description` is evaluated as `pteros launch --dry-run` does, in a process
of its own. An argument that has no default gets its first choice, else its own name, and so
does a launch configuration that the file does not set. `launch_values.txt` beside this file
has values that must be right: arguments, variables, and files that a robot has in /etc. For
those the tool runs in a mount namespace of its own.
The files import packages of PyPI: click, jinja2, lxml, psutil, pydantic, urdf-parser-py, xacro.
`--support` names folders whose launch files are not counted: packages that the others need.
"""

import argparse
import collections
import fnmatch
import importlib
import json
import os
import pathlib
import re
import select
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import types
import warnings

import pteros.launch
from launch.frontend import Parser

VALUES = pathlib.Path(__file__).with_name('launch_values.txt')
IS_PRIVATE = 'PTEROS_CORPUS_IS_PRIVATE'
TIMEOUT_S = 30.0
RETRIES_MAX = 40
ANSWER_BYTES_MAX = 1 << 20

# Who refuses a file: it needs something that is not in the folders, or ROS 2 refuses it too.
NEEDS_MORE, ROS_2_TOO, OTHER = 'needs more', 'ROS 2 refuses as well', 'refused'

# Reasons: a name, the kind, and a pattern of the error.
REASONS = (
    ('it imports a Python module that is not there', NEEDS_MORE,
     r'ModuleNotFoundError|No module named'),
    ('it reads a file that is not there', NEEDS_MORE,
     r'FileNotFound|No such file|could not be found|NotADirectoryError|[Ii]nvalid configuration'),
    ('its xacro file gives another one a parameter that it does not have', ROS_2_TOO,
     r'XacroException: Invalid parameter'),
    ('a xacro file of the folders does not fit to another one', NEEDS_MORE, r'XacroException'),
    ('it needs an environment variable', NEEDS_MORE,
     r"environment variable '|KeyError: [A-Z0-9_]+$"),
    ('a part of it cannot run here', NEEDS_MORE, r'tracing setup failed'),
    ('it needs a real value of an argument', NEEDS_MORE,
     r'KeyError: |ValueError: |No plugin_name|must be either|the Python expression '
     r'|is not valid. Valid options'),
    ('it needs a configuration that the including file sets', ROS_2_TOO,
     r"launch configuration '.*' does not exist|InvalidConditionExpressionError"),
    ('it uses what the API does not have', ROS_2_TOO,
     r'TypeError: .*(unexpected keyword|missing .* required|unsupported operand|for param)'),
    ('it imports a name that its module does not have', ROS_2_TOO, r'ImportError'),
    ('it gives a node an invalid name or namespace', ROS_2_TOO,
     r'InvalidNodeName|InvalidNamespace'),
)


class StubText(str):
    """A text whose attributes are texts: their own names."""

    def __getattr__(self, name):
        if name.startswith('__'):
            raise AttributeError(name)
        return StubText(name)


class StubModule(types.ModuleType):
    """A module in place of one that is not there, such as one that C++ makes."""

    def __getattr__(self, name):
        if name.startswith('__'):
            raise AttributeError(name)
        return StubText(name)


class Corpus:
    """The packages of the folders, in a prefix."""

    def __init__(self, folders, support, prefix):
        self.folders = folders
        self.prefix = prefix
        self.index = prefix / 'share/ament_index/resource_index/packages'
        self.index.mkdir(parents=True)
        for folder in folders + support:
            for manifest in sorted(folder.rglob('package.xml')):
                self._add(manifest)

    def _add(self, manifest):
        match = re.search(r'<name>\s*([\w-]+)\s*</name>', manifest.read_text(errors='replace'))
        if match is None or (self.index / match[1]).exists():
            return
        name, source = match[1], manifest.parent
        (self.index / name).touch()
        (self.prefix / 'share' / name).symlink_to(source)
        for parent in (source, source / 'src'):
            if any(parent.glob('[a-z]*/__init__.py')):
                sys.path.append(str(parent))

    def add_empty(self, name):
        """Add a package that is an empty folder; False if it is there."""
        if (self.index / name).exists():
            return False
        (self.index / name).touch()
        (self.prefix / 'share' / name).mkdir(exist_ok=True)
        return True

    def files(self):
        """Yield each launch file with its repository."""
        for folder in self.folders:
            for path in sorted(folder.rglob('*.py')):
                text = path.read_text(errors='replace')
                is_test = re.search(
                    r'^(?:import|from) launch_(?:testing|pytest)', text, re.MULTILINE)
                is_launch_file = re.search(
                    r'^def generate_launch_description\(', text, re.MULTILINE)
                if is_launch_file and not is_test:
                    yield folder.name, path


class Values:
    """The lines of `launch_values.txt`, whose head says what they mean."""

    def __init__(self, folders, made):
        self._repositories = {folder.name.replace('+', '/'): folder for folder in folders}
        self._made = made
        self._arguments = []
        self._modules = []

    def read(self, path):
        """Read the lines. All but arguments and modules take effect at once."""
        kinds = {
            'argument': (4, lambda *words: self._arguments.append(words)),
            'modules': (2, lambda *words: self._modules.append(words)),
            'copy': (2, self._copy),
            'environment': (2, os.environ.__setitem__),
            'generate': (3, self._generate),
            'program': (2, self._program),
            'stub': (1, lambda name: sys.modules.__setitem__(name, StubModule(name))),
        }
        for number, line in enumerate(path.read_text().splitlines(), 1):
            kind, *words = shlex.split(line, comments=True) or ['']
            count, act = kinds.get(kind, (None, None))
            if count == len(words):
                act(*(self._expand(word) for word in words))
            elif kind:
                raise SystemExit(f'{path.name}, line {number}: {line!r}: the head of the file '
                                 'says what a line may be')

    def _expand(self, text):
        """Replace `{files}` by the folder of the copies, and `{owner/name}` by a repository."""
        def value(match):
            if match[1] == 'files':
                return str(self._made)
            return str(self._repositories.get(match[1], f'/not-there/{match[1]}'))

        return re.sub(r'\{([\w.@/-]+)\}', value, text)

    def _copy(self, source, target):
        source, target = pathlib.Path(source), pathlib.Path(target)
        # An absolute path of a robot exists in the tool's own mount namespace alone.
        is_private = target.is_relative_to(self._made) or IS_PRIVATE in os.environ
        if source.is_file() and is_private:
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)

    def _generate(self, module, name, folder):
        """Run a generator in a process of its own."""
        child = os.fork()
        if child == 0:
            try:
                os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
                getattr(importlib.import_module(module), name)(folder).generate()
            except Exception as error:
                print(f'{module}.{name}: {error}', file=sys.stderr)
            finally:
                os._exit(0)
        os.waitpid(child, 0)

    def _program(self, name, text):
        """Make a program that prints a text."""
        folder = self._made / 'bin'
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f'#!/bin/sh\necho {shlex.quote(text)}\n')
        (folder / name).chmod(0o755)
        os.environ['PATH'] = f"{folder}:{os.environ['PATH']}"

    def of(self, repository, path):
        """Return the arguments of a launch file, and the folders of its Python modules."""
        name = repository.replace('+', '/')
        arguments = {
            argument: value for owner, files, argument, value in self._arguments
            if owner == name and fnmatch.fnmatch(path, files)}
        return arguments, [folder for owner, folder in self._modules if owner == name]


def enter_mount_namespace():
    """Run this program again where it may write to /etc without a trace, if it can."""
    if IS_PRIVATE in os.environ:
        return
    # The overlay holds the folders in `$d` without their path.
    mount = ('d=$(mktemp -d) && { mount -t tmpfs none "$d" && mkdir "$d/up" "$d/work" && mount -t '
             'overlay -o lowerdir=/etc,upperdir="$d/up",workdir="$d/work" none /etc; s=$?; '
             'umount -l "$d"; rmdir "$d"; [ $s = 0 ]; }')
    command = ['unshare', '--user', '--map-root-user', '--mount', 'sh', '-c']
    if shutil.which('unshare') and subprocess.run(
            [*command, mount], stderr=subprocess.DEVNULL).returncode == 0:
        os.environ[IS_PRIVATE] = '1'
        os.execvp('unshare', [*command, mount + ' && exec "$@"', 'sh', sys.executable, *sys.argv])


def evaluate_here(path, arguments, modules):
    """Return what a dry run of a file gives."""
    os.setpgid(0, 0)
    sys.path[:0] = modules
    # Some files read the command line themselves.
    sys.argv = ['ros2', 'launch', path.parent.name, path.name,
                *(f'{name}:={value}' for name, value in arguments)]
    null = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(null, descriptor)
    warnings.simplefilter('ignore')
    try:
        with pteros.launch._quiet():
            plan, _ = pteros.launch.make_plan(str(path), arguments)
        return {
            'ok': True, 'processes': len(plan.processes()), 'unknown': len(plan.unknown),
            'missing': len(plan.missing)}
    except Exception as error:
        return {
            'ok': False, 'error': pteros.launch.describe_error(error),
            'trace': ''.join(traceback.format_exception(error))[-4000:]}


def evaluate(path, arguments, modules):
    """Return what a dry run of a file gives, in a process of its own."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read_end)
        answer = {'ok': False, 'error': 'it ended the process'}
        try:
            answer = evaluate_here(path, arguments, modules)
        finally:
            os.write(write_end, json.dumps(answer).encode())
            os._exit(0)
    os.close(write_end)
    data, until = b'', time.monotonic() + TIMEOUT_S
    while len(data) < ANSWER_BYTES_MAX:
        left = max(0.0, until - time.monotonic())
        if not select.select([read_end], [], [], left)[0]:
            os.killpg(child, signal.SIGKILL)
            break
        part = os.read(read_end, 1 << 16)
        if not part:
            break
        data += part
    os.close(read_end)
    os.waitpid(child, 0)
    return json.loads(data) if data else {'ok': False, 'error': f'it takes over {TIMEOUT_S:g} s'}


def evaluate_with_help(corpus, path, arguments, modules):
    """Evaluate a file; add empty packages and values of arguments while it asks for them."""
    for _ in range(RETRIES_MAX):
        result = evaluate(path, list(arguments.items()), modules)
        if result['ok']:
            break
        error = result['error']
        package = re.search(r"package '([\w-]+)' not found", error)
        if package is not None and corpus.add_empty(package[1]):
            continue
        # A part of another file uses what that file sets.
        set_elsewhere = re.search(r"launch configuration '([^']+)' does not exist", error)
        if set_elsewhere is not None and set_elsewhere[1] not in arguments:
            arguments[set_elsewhere[1]] = set_elsewhere[1]
            continue
        argument = re.search(r'equired (?:launch )?argument [\'"]([^\'"]+)[\'"]', error)
        if argument is None or argument[1] in arguments:
            break
        choices = re.search(r'Valid choices are: \[[\'"]([^\'"]*)', error)
        arguments[argument[1]] = argument[1] if choices is None else choices[1]
    return result


def reason_of(error):
    """Return the reason of an error, and its kind."""
    for name, kind, pattern in REASONS:
        if re.search(pattern, error):
            return name, kind
    return short(error), OTHER


def short(error):
    """Return an error without the folders of paths."""
    return re.sub(r'[\w/.+-]*/', '', error.splitlines()[0]).replace('|', '/')[:110]


def share(part, whole):
    """Return a part in percent."""
    return f'{100 * part / max(whole, 1):.1f} %'


def report(results, support):
    """Return the page."""
    counts = collections.Counter(
        reason_of(each['error']) for each in results.values() if not each['ok'])
    kinds = collections.Counter()
    for (_, kind), count in counts.items():
        kinds[kind] += count
    total, accepted = len(results), sum(each['ok'] for each in results.values())
    possible = accepted + kinds[OTHER]
    lines = [
        '# Python launch files of public repositories', '',
        '`tools/corpus/python_launch_files.py --markdown FILE DIR…` evaluates the Python launch',
        'files of checked-out repositories as `pteros launch --dry-run` does. It writes this page.',
        'Packages that are not in the folders are empty folders. An argument without a default',
        'gets its first choice, else its own name. A launch configuration that an including file',
        'sets gets its own name. `tools/corpus/launch_values.txt` lists the values that must be',
        'right: parameter files of the same repository, robot models, variables. `--support DIR`',
        'names further repositories whose launch files are not counted: packages that the others',
        'need. Modules and programs that only a build makes are replaced by stand-ins that the',
        'list names. The repositories are not part of this tree. Launch tests are left out.', '',
        '| files | evaluated | of all | need more | ROS 2 refuses as well | refused |'
        ' evaluated of what can be |',
        '|---:|---:|---:|---:|---:|---:|---:|',
        f'| {total} | {accepted} | {share(accepted, total)} | {kinds[NEEDS_MORE]} | '
        f'{kinds[ROS_2_TOO]} | {kinds[OTHER]} | {share(accepted, possible)} |', '',
        '*Need more* counts files that need a Python module, a file, a variable or a value that',
        'is not in the folders. *ROS 2 refuses as well* counts files that break a rule of',
        "ROS 2's own packages: they are parts of other files, or use an older or newer API.", '',
        'The plans have '
        f"{sum(each.get('processes', 0) for each in results.values())} processes. "
        f"{sum(bool(each.get('unknown')) for each in results.values())} plans name something "
        'that is not known before the launch runs.', '', '## Refused files by reason', '',
        '| reason | kind | files |', '|---|---|---:|']
    lines += [f'| {reason} | {kind} | {count} |' for (reason, kind), count in counts.most_common()]
    lines += ['', '## Repositories', '', '| repository | evaluated | files |', '|---|---:|---:|']
    repositories = collections.defaultdict(list)
    for (repository, _), each in results.items():
        repositories[repository.replace('+', '/')].append(each['ok'])
    for repository, outcomes in sorted(repositories.items()):
        lines.append(f'| {repository} | {sum(outcomes)} | {len(outcomes)} |')
    names = ', '.join(folder.name.replace('+', '/') for folder in support)
    lines += ['', f'Packages came from these as well: {names or "none"}.']
    lines += ['', '## Refused files', '', '| file | error |', '|---|---|']
    for (repository, path), each in sorted(results.items()):
        if not each['ok']:
            name = repository.replace('+', '/')
            lines.append(f"| {name}: {path} | {short(each['error'])} |")
    return '\n'.join(lines) + '\n'


def main():
    """Evaluate the files and print or write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('folders', nargs='+', type=pathlib.Path, metavar='DIR')
    parser.add_argument('--markdown', type=pathlib.Path, metavar='FILE')
    parser.add_argument('--refused', action='store_true', help='print the refused files')
    parser.add_argument('--support', action='append', default=[], type=pathlib.Path, metavar='DIR')
    options = parser.parse_args()
    enter_mount_namespace()
    with tempfile.TemporaryDirectory() as folder:
        prefix = pathlib.Path(folder) / 'prefix'
        folders = [path.resolve() for path in options.folders]
        support = [path.resolve() for path in options.support]
        corpus = Corpus(folders, support, prefix)
        values = Values(folders + support, pathlib.Path(folder) / 'files')
        os.environ['AMENT_PREFIX_PATH'] = str(prefix)
        os.environ['ROS_LOG_DIR'] = folder
        os.chdir(folder)
        values.read(VALUES)
        Parser.load_launch_extensions()
        Parser.load_parser_implementations()
        results = {}
        for repository, path in corpus.files():
            root = next(each for each in corpus.folders if each.name == repository)
            name = str(path.relative_to(root))
            results[repository, name] = evaluate_with_help(
                corpus, path, *values.of(repository, name))
    if options.refused:
        for (repository, path), each in results.items():
            if not each['ok']:
                print(f"{repository}/{path}: {each['error']}")
    page = report(results, support)
    if options.markdown is not None:
        options.markdown.write_text(page)
    else:
        print(page)


if __name__ == '__main__':
    main()
