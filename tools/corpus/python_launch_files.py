#!/usr/bin/env python3
"""Evaluates the Python launch files of checked-out repositories, and counts the refused ones.

It runs on a Python with the wheel `pteros`. Each folder is a repository. Packages in the
folders count as installed: their share folder is their source folder, and their Python
packages can be imported. Packages that are not in the folders are empty folders. Every file
with `generate_launch_description` is evaluated as `pteros launch --dry-run` does, in a process
of its own. An argument that has no default gets its first choice, else its own name. Each
`--environment` sets a variable that a repository's documentation asks for.
"""

import argparse
import collections
import json
import os
import pathlib
import re
import select
import signal
import sys
import tempfile
import time
import traceback
import warnings

import pteros.launch
from launch.frontend import Parser

TIMEOUT_S = 30.0
RETRIES_MAX = 40
ANSWER_BYTES_MAX = 1 << 20

# Reasons: a name, whether ROS 2 refuses such a file as well, and a pattern of the error.
REASONS = (
    ('it imports a Python module that is not there', False, r'ModuleNotFoundError|No module named'),
    ('it imports a name that its module does not have', False, r'ImportError'),
    ('it reads a file that is not there', False,
     r'FileNotFoundError|FileNotFound|could not be found|NotADirectoryError|not found or'),
    ('it needs an environment variable', False, r"environment variable '|KeyError: [A-Z0-9_]+$"),
    ('it needs a configuration that the including file sets', True,
     r"launch configuration '.*' does not exist"),
    ('it passes arguments that the API of Jazzy does not have', True,
     r'TypeError: .*(unexpected keyword|missing .* required|unsupported operand)'),
    ('it gives a node an invalid name or namespace', True, r'InvalidNodeName|InvalidNamespace'),
    ('an argument gets a value that is none of its choices', True, r'is not valid. Valid options'),
)


class Corpus:
    """The packages of the folders, in a prefix."""

    def __init__(self, folders, prefix):
        self.folders = folders
        self.prefix = prefix
        self.index = prefix / 'share/ament_index/resource_index/packages'
        self.index.mkdir(parents=True)
        for folder in folders:
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
                if re.search(r'^def generate_launch_description\(', text, re.MULTILINE):
                    yield folder.name, path


def evaluate_here(path, arguments):
    """Return what a dry run of a file gives."""
    os.setpgid(0, 0)
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


def evaluate(path, arguments):
    """Return what a dry run of a file gives, in a process of its own."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read_end)
        answer = {'ok': False, 'error': 'it ended the process'}
        try:
            answer = evaluate_here(path, arguments)
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


def evaluate_with_help(corpus, path):
    """Evaluate a file; add empty packages and values of arguments while it asks for them."""
    arguments = {}
    for _ in range(RETRIES_MAX):
        result = evaluate(path, list(arguments.items()))
        if result['ok']:
            break
        error = result['error']
        package = re.search(r"package '([\w-]+)' not found", error)
        if package is not None and corpus.add_empty(package[1]):
            continue
        argument = re.search(r'equired (?:launch )?argument [\'"]([\w.-]+)[\'"]', error)
        if argument is None or argument[1] in arguments:
            break
        choices = re.search(r'Valid choices are: \[[\'"]([^\'"]*)', error)
        arguments[argument[1]] = argument[1] if choices is None else choices[1]
    return result


def reason_of(error):
    """Return the reason of an error, and whether ROS 2 refuses the file as well."""
    for name, is_wrong, pattern in REASONS:
        if re.search(pattern, error):
            return name, is_wrong
    return error.splitlines()[0][:100], False


def report(results):
    """Return the page."""
    total, accepted = len(results), sum(each['ok'] for each in results.values())
    lines = [
        '# Python launch files of public repositories', '',
        '`tools/corpus/python_launch_files.py --markdown FILE DIR…` evaluates the Python launch',
        'files of checked-out repositories as `pteros launch --dry-run` does. It writes this page.',
        'Packages that are not in the folders are empty folders. An argument without a default',
        "gets its first choice, else its own name. The repositories' files are not part of this",
        'tree.', '',
        f'**{accepted} of {total} files are evaluated: {100 * accepted / max(total, 1):.1f} %.**', '',
        'The plans have '
        f"{sum(each.get('processes', 0) for each in results.values())} processes. "
        f"{sum(bool(each.get('unknown')) for each in results.values())} plans say that something "
        'is not known before the launch runs.', '', '## Refused files by reason', '',
        '| reason | files | ROS 2 refuses them as well |', '|---|---:|---|']
    counts = collections.Counter(
        reason_of(each['error']) for each in results.values() if not each['ok'])
    for (reason, is_wrong), count in counts.most_common():
        lines.append(f"| {reason} | {count} | {'yes' if is_wrong else ''} |")
    lines += ['', '## Repositories', '', '| repository | evaluated | files |', '|---|---:|---:|']
    repositories = collections.defaultdict(list)
    for (repository, _), each in results.items():
        repositories[repository.replace('+', '/')].append(each['ok'])
    for repository, outcomes in sorted(repositories.items()):
        lines.append(f'| {repository} | {sum(outcomes)} | {len(outcomes)} |')
    lines += ['', '## Refused files', '', '| file | error |', '|---|---|']
    for (repository, path), each in sorted(results.items()):
        if not each['ok']:
            text = re.sub(r'\S*/', '', each['error'].splitlines()[0]).replace('|', '/')
            lines.append(f"| {repository.replace('+', '/')}: {path} | {text[:110]} |")
    return '\n'.join(lines) + '\n'


def main():
    """Evaluate the files and print or write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('folders', nargs='+', type=pathlib.Path, metavar='DIR')
    parser.add_argument('--markdown', type=pathlib.Path, metavar='FILE')
    parser.add_argument('--refused', action='store_true', help='print the refused files')
    parser.add_argument('--environment', action='append', default=[], metavar='NAME=VALUE')
    options = parser.parse_args()
    for setting in options.environment:
        name, _, value = setting.partition('=')
        os.environ[name] = value
    with tempfile.TemporaryDirectory() as folder:
        prefix = pathlib.Path(folder) / 'prefix'
        corpus = Corpus([path.resolve() for path in options.folders], prefix)
        os.environ['AMENT_PREFIX_PATH'] = str(prefix)
        os.environ['ROS_LOG_DIR'] = folder
        os.chdir(folder)
        Parser.load_launch_extensions()
        Parser.load_parser_implementations()
        results = {}
        for repository, path in corpus.files():
            root = next(each for each in corpus.folders if each.name == repository)
            results[repository, str(path.relative_to(root))] = evaluate_with_help(corpus, path)
    if options.refused:
        for (repository, path), each in results.items():
            if not each['ok']:
                print(f"{repository}/{path}: {each['error']}")
    page = report(results)
    if options.markdown is not None:
        options.markdown.write_text(page)
    else:
        print(page)


if __name__ == '__main__':
    main()
