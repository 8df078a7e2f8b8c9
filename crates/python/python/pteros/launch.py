"""
The command ``python3 -m pteros.launch``: runs, checks and shows launch files.

``pteros launch`` hands Python launch files to it, and files that include one.
"""

from __future__ import annotations

# flake8: noqa: E402
import sys

from pteros import _search_path

if __name__ == '__main__':
    # `python3 -m` puts the current folder first. The imports below must not look there.
    _search_path.prefer_own_packages()

import argparse
import contextlib
import json
import logging
import os
import shutil
import signal
import tempfile
import traceback

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Dict, Iterator, List, NoReturn, Optional, Tuple

    from launch import LaunchContext, LaunchDescription
    from launch.actions import DeclareLaunchArgument, IncludeLaunchDescription
    from launch.plan import Plan

SEARCH_DEPTH_MAX = 6
"""How deep launch files may lie below a package's share folder."""

_ENDINGS = ('.py', '.xml', '.yaml', '.yml')


class UsageError(Exception):
    """A wrong command line."""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog='pteros launch', description='Run a launch file.', allow_abbrev=False)
    parser.add_argument(
        'words', nargs='+', metavar='FILE | PACKAGE FILE | NAME:=VALUE',
        help='a launch file, or a package and the name of a launch file in it; and arguments')
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument('--check', action='store_true', help='check the file; start nothing')
    mode.add_argument(
        '--dry-run', '-p', '--print', '--print-description', action='store_true', dest='dry_run',
        help='print what would be started; start nothing')
    mode.add_argument(
        '-s', '--show-args', '--show-arguments', action='store_true', dest='show_arguments',
        help='print the arguments of the file')
    parser.add_argument('-d', '--debug', action='store_true', help='print debug messages')
    parser.add_argument(
        '-n', '--noninteractive', action='store_true',
        help='Ctrl-C does not reach the processes through a terminal')
    parser.add_argument(
        '-a', '--show-all-subprocesses-output', action='store_true', dest='show_output',
        help='show the output of all processes')
    parser.add_argument('--launch-prefix', metavar='COMMAND', help='command prefix of processes')
    parser.add_argument(
        '--launch-prefix-filter', metavar='TEXT',
        help='prefix only programs whose names begin with this regular expression')
    parser.add_argument('--json', action='store_true', help='print JSON')
    return parser


# --- files and arguments --------------------------------------------------------------------

def _launch_files(share: str) -> List[str]:
    found = []
    for folder, folders, names in os.walk(share):
        if folder[len(share):].count(os.sep) >= SEARCH_DEPTH_MAX:
            folders.clear()
        found.extend(
            os.path.join(folder, name) for name in names
            if 'launch' in name and name.endswith(_ENDINGS))
    return sorted(found)


def _find_in_package(package: str, name: str) -> str:
    from ament_index_python.packages import PackageNotFoundError, get_package_share_directory
    try:
        share = get_package_share_directory(package)
    except (PackageNotFoundError, EnvironmentError, ValueError) as error:
        raise UsageError(error.args[0]) from None
    known = _launch_files(share)
    found = [path for path in known if os.path.basename(path) == name]
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(
            f"package '{package}' has several launch files '{name}'; write the path of one: "
            f"{', '.join(found)}")
    names = ', '.join(os.path.basename(path) for path in known) or 'none'
    raise UsageError(
        f"package '{package}' has no launch file '{name}' below {share}; it has: {names}")


def _split_words(words: List[str]) -> Tuple[str, List[Tuple[str, str]]]:
    """Return the path of the launch file, and its arguments."""
    places = [word for word in words if ':=' not in word]
    arguments = []
    for word in words:
        name, separator, value = word.partition(':=')
        if separator:
            if not name:
                raise UsageError(f"'{word}' has no argument name; write NAME:=VALUE")
            arguments.append((name, value))
    if len(places) == 2 and not os.path.isfile(places[0]):
        return _find_in_package(*places), arguments
    if not places:
        raise UsageError('no launch file; write pteros launch FILE, or PACKAGE FILE')
    if len(places) > 1:
        raise UsageError(
            f"'{places[1]}' is not an argument of a launch file; write NAME:=VALUE")
    if not os.path.isfile(places[0]):
        if os.path.exists(places[0]):
            raise UsageError(
                f"'{places[0]}' is not a regular file; write the path of a launch file")
        raise UsageError(
            f"there is no launch file '{places[0]}'; write its path, or PACKAGE FILE")
    return os.path.abspath(places[0]), arguments


# --- modes ----------------------------------------------------------------------------------

_READ_LATER = (
    'launch-prefix', 'launch-prefix-filter', 'sigterm_timeout', 'sigkill_timeout', 'emulate_tty')
"""Configurations that the actions of processes read without a declaration."""


def _description(path: str, arguments: List[Tuple[str, str]]) -> LaunchDescription:
    from launch import LaunchDescription
    from launch.actions import IncludeLaunchDescription
    from launch.actions.opaque_function import UninterruptedFunction
    from launch.launch_description_sources import AnyLaunchDescriptionSource
    include = IncludeLaunchDescription(
        AnyLaunchDescriptionSource(path), launch_arguments=arguments)

    def warn(context: LaunchContext) -> None:
        _warn_of_unknown_arguments(context, path, include, arguments)

    return LaunchDescription([include, UninterruptedFunction(function=warn)])


def _warn_of_unknown_arguments(
    context: LaunchContext, path: str, include: IncludeLaunchDescription,
    arguments: List[Tuple[str, str]],
) -> None:
    """Warn of arguments that no file declares, and that no action has looked up."""
    import difflib

    import launch.logging
    declared = sorted({
        argument.name for description in include.get_sub_entities()
        for argument in description.get_launch_arguments()})
    for name, value in arguments:
        if name in declared or name in _READ_LATER or context._has_looked_up(name):
            continue
        close = ' or '.join(difflib.get_close_matches(name, declared))
        similar = f'did you mean {close}?' if close else (
            f'it has: {", ".join(declared) or "none"}')
        text = (
            f'{path}: no file declares the argument "{name}", given as {name}:={value}, and '
            f'nothing has looked it up so far; {similar}')
        if context.plan is None:
            launch.logging.get_logger('launch').warning(text)
        else:
            context.plan.add_warning(text)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Write no log files, and what launch files print to stderr, while a file is evaluated."""
    import launch.logging
    launch.logging.reset()
    config = launch.logging.launch_config
    folder = tempfile.mkdtemp(prefix='pteros_launch_')
    config.log_dir = folder
    config.log_handler_factory = lambda path, encoding: launch.logging.handlers.NullHandler()
    config.level = logging.CRITICAL + 1
    stdout, sys.stdout = sys.stdout, sys.stderr
    try:
        yield
    finally:
        sys.stdout = stdout
        shutil.rmtree(folder, ignore_errors=True)


def make_plan(path: str, arguments: List[Tuple[str, str]]) -> Tuple[Plan, LaunchContext]:
    """Return the plan of a launch file, and the context at its end."""
    from launch import LaunchContext
    from launch.plan import Plan
    from launch.utilities import visit_all_entities_and_collect_futures
    plan = Plan()
    context = LaunchContext(argv=[f'{name}:={value}' for name, value in arguments])
    context._set_plan(plan)
    context._push_locals()
    visit_all_entities_and_collect_futures(_description(path, arguments), context)
    context._pop_locals()
    plan.finish(context)
    return plan, context


def _print_plan(path: str, plan: Plan, is_json: bool) -> int:
    if is_json:
        print(json.dumps({'file': path, **plan.to_json()}, default=str))
        return 0
    print(f'{path}:')
    for line in plan.lines('  '):
        print(line)
    for reason in plan.unknown:
        print(f'not known before it runs: {reason}')
    for reason in (*plan.missing, *plan.warnings):
        print(f'warning: {reason}', file=sys.stderr)
    return 0


def _print_checked(path: str, plan: Plan, is_json: bool) -> int:
    count, files = len(plan.processes()), len(plan.files)
    if is_json:
        print(json.dumps({
            'file': path, 'ok': not plan.missing,
            'faults': [{'message': reason} for reason in plan.missing],
            'remarks': [*plan.unknown, *plan.warnings], 'processes': count}))
        return 1 if plan.missing else 0
    for reason in plan.missing:
        print(f'error: {reason}', file=sys.stderr)
    if plan.missing:
        return 1
    for reason in plan.unknown:
        print(f'warning: not known before it runs: {reason}', file=sys.stderr)
    for reason in plan.warnings:
        print(f'warning: {reason}', file=sys.stderr)
    processes = 'process' if count == 1 else 'processes'
    print(f"{path}: no errors; {count} {processes}, {files} file{'s' * (files != 1)}")
    return 0


def _argument_json(argument: DeclareLaunchArgument, context: LaunchContext) -> Dict[str, Any]:
    from launch.utilities import describe_substitutions, perform_substitutions
    default: Optional[str] = None
    if argument.default_value is not None:
        try:
            default = perform_substitutions(context, argument.default_value)
        except Exception:
            default = describe_substitutions(argument.default_value)
    return {
        'name': argument.name, 'default': default, 'description': argument.description,
        'choices': argument.choices}


def _print_arguments(path: str, is_json: bool) -> int:
    from launch import LaunchContext
    from launch.launch_description_sources import get_launch_description_from_any_launch_file
    with _quiet():
        description = get_launch_description_from_any_launch_file(path)
        context = LaunchContext()
        context.extend_locals({
            'current_launch_file_path': path,
            'current_launch_file_directory': os.path.dirname(path)})
        rows = [_argument_json(each, context) for each in description.get_launch_arguments()]
    if is_json:
        print(json.dumps(rows))
        return 0
    if not rows:
        print('No arguments.')
        return 0
    print("Arguments (pass arguments as '<name>:=<value>'):")
    for row in rows:
        print(f"\n    '{row['name']}':\n        {row['description']}")
        if row['default'] is not None:
            print(f"        (default: '{row['default']}')")
    return 0


def _run(path: str, arguments: List[Tuple[str, str]], options: argparse.Namespace) -> int:
    """
    Run the file.

    :returns: 1 if the file is wrong, a process has failed by itself or could not be started,
        or a component was not loaded.
    """
    from launch import LaunchDescription, LaunchService
    from launch.actions import RegisterEventHandler
    from launch.event_handlers import OnProcessExit
    is_failed = False

    def note_failure(event: Any, context: LaunchContext) -> None:
        nonlocal is_failed
        is_failed |= event.returncode != 0 and not context.is_shutdown

    service = LaunchService(
        argv=[f'{name}:={value}' for name, value in arguments],
        noninteractive=options.noninteractive, debug=options.debug)
    service.include_launch_description(LaunchDescription([
        RegisterEventHandler(OnProcessExit(on_exit=note_failure))]))
    service.include_launch_description(_description(path, arguments))
    code = service.run()
    return 1 if is_failed or service.context._is_failed else code


def main(words: Optional[List[str]] = None) -> int:
    """Run the command, and return its exit code."""
    parser = _parser()
    options = parser.parse_intermixed_args(words)
    is_run = not (options.check or options.dry_run or options.show_arguments)
    try:
        if options.launch_prefix_filter is not None and options.launch_prefix is None:
            raise UsageError('--launch-prefix-filter needs --launch-prefix')
        if options.json and is_run:
            raise UsageError(
                '--json is for --check, --dry-run and --show-args of Python launch files; a '
                'launch writes text')
        path, arguments = _split_words(options.words)
    except UsageError as error:
        print(f'error: {error}', file=sys.stderr)
        return 2
    if options.show_output:
        os.environ['OVERRIDE_LAUNCH_PROCESS_OUTPUT'] = 'both'
    for name in ('launch_prefix', 'launch_prefix_filter'):
        value = getattr(options, name)
        if value is not None:
            arguments.append((name.replace('_', '-'), value))
    if is_run:
        return _run(path, arguments, options)
    try:
        if options.show_arguments:
            return _print_arguments(path, options.json)
        with _quiet():
            plan, _ = make_plan(path, arguments)
    except Exception as error:
        return _fail(path, error, options)
    if options.check:
        return _print_checked(path, plan, options.json)
    return _print_plan(path, plan, options.json)


def _fail(path: str, error: Exception, options: argparse.Namespace) -> int:
    from launch._error_text import describe_error
    text = describe_error(error)
    if options.debug:
        traceback.print_exception(type(error), error, error.__traceback__)
    if options.json:
        print(json.dumps({'file': path, 'ok': False, 'faults': [{'message': text}]}))
    else:
        print(f'error: {text}', file=sys.stderr)
    return 1


def _exit() -> NoReturn:
    try:
        code = main()
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader, such as `head`, has had enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    except KeyboardInterrupt:
        # A launch that runs handles it.
        print('interrupted', file=sys.stderr)
        code = 128 + signal.SIGINT
    sys.exit(code)


if __name__ == '__main__':
    _exit()
