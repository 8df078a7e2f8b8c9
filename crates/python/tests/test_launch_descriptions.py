"""The behaviour table of launch, `crates/launch/tests/behaviour/descriptions.yaml`, in Python."""

import json
import math
import os
import pathlib

import pytest

from launch import LaunchContext
from launch.actions import ExecuteProcess
from launch.utilities.yaml_reader import load_yaml
from launch_files import Folder
from pteros import _native

_CRATES = pathlib.Path(__file__).resolve().parent.parent.parent
_TABLE = load_yaml((_CRATES / 'launch/tests/behaviour/descriptions.yaml').read_text())
_HEAD = '''\
from typing import List
from launch import *
from launch.actions import *
from launch.conditions import *
from launch.substitutions import *
from launch_ros.actions import *
from launch_ros.descriptions import *
from launch_ros.parameter_descriptions import ParameterFile, ParameterValue


def generate_launch_description():
    return LaunchDescription([
'''


def _files(row):
    """Return the launch files of a row: in Python, and those that Python reads itself."""
    indented = row['yaml'].replace('\n', '\n  ')
    yield 'a.launch.py', f'{_HEAD}{row["python"]}\n])\n'
    yield 'a.launch.xml', f'<launch>{row["xml"]}</launch>'
    yield 'a.launch.yaml', f'launch:\n  {indented}\n'


def _shown(steps, parameters_of, folder):
    """Return the processes of a plan as the table writes them."""
    for step in steps:
        if step['step'] == 'load':
            for each in step['components']:
                parameters, extra = (
                    json.dumps(each[name], sort_keys=True)
                    for name in ('parameters', 'extra_arguments'))
                yield (
                    f"load {step['container']}: {each['package']} {each['plugin']} as "
                    f"{each['namespace']} {each['name']} {parameters} "
                    f"{' '.join(each['remaps'])} {extra}")
        if step['step'] != 'start':
            continue
        words = [parameters_of(word) for word in step['command']]
        has_blanks = any(not word or ' ' in word and word[0] != '«' for word in words)
        yield f"{step['process'].rpartition('-')[0]}: {('|' if has_blanks else ' ').join(words)}"
        for name, value in sorted(step['environment'].items()):
            yield f'  env {name}={value}'
        if step['cwd'] is not None:
            yield f"  cwd {step['cwd']}"
        output = {name: ' '.join(to) for name, to in step['output'].items()}
        if output != {'stdout': 'log', 'stderr': 'screen log'}:
            yield f"  stdout {output['stdout']}"
            yield f"  stderr {output['stderr']}"
        respawn = step['respawn']
        if respawn is not None:
            most = respawn['retries_max']
            yield f"  respawn delay {respawn['delay_s']}{'' if most is None else f' max {most}'}"
        if step['emulate_tty']:
            yield '  tty'
        timeouts = step['sigterm_timeout_s'], step['sigkill_timeout_s']
        if timeouts != (5.0, 5.0):
            yield f'  timeouts {timeouts[0]} {timeouts[1]}'
        for below in step.get('steps', ()):
            if below['step'] == 'on_event':
                kinds = [each['step'] for each in below['steps']]
                assert kinds == ['shutdown'], below
                yield '  on_exit shutdown'


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    """Give a prefix with the package of the table and its files."""
    made = Folder(tmp_path_factory.mktemp('descriptions'))
    made.prefix = made.path
    made.index = made.path / 'share/ament_index/resource_index/packages'
    made.index.mkdir(parents=True)
    (made.index / 'box').touch()
    for program in ('talk', 'hear'):
        os.chmod(made.write(f'lib/box/{program}', '#!/bin/sh\n'), 0o755)
    for name, text in _TABLE['files'].items():
        made.write(name, text)
    return made


@pytest.mark.parametrize('row', _TABLE['rows'], ids=lambda row: row['name'])
def test_a_description_starts_the_processes_of_the_table(row, folder, monkeypatch):
    from pteros.launch import make_plan
    monkeypatch.setenv('AMENT_PREFIX_PATH', str(folder.path))
    monkeypatch.setenv('ROS_LOG_DIR', str(folder.path))
    monkeypatch.delenv('OVERRIDE_LAUNCH_PROCESS_OUTPUT', raising=False)
    place = str(folder.path)

    def parameters_of(word):
        if not os.path.basename(word).startswith('launch_params_'):
            return word
        lines = pathlib.Path(word).read_text().splitlines()
        return f"«{'; '.join(line.strip() for line in lines)}»"

    for name, text in _files(row):
        folder.write(name, text.replace('FOLDER', place))
        environment = dict(os.environ)
        try:
            plan, _ = make_plan(os.path.join(place, name), [*row.get('arguments', {}).items()])
            given = '\n'.join(_shown(plan.to_json()['steps'], parameters_of, folder)) + '\n'
        finally:
            os.environ.clear()
            os.environ.update(environment)
        assert not plan.missing and not plan.unknown, name
        assert given.replace(place, 'FOLDER') == row['processes'], name


@pytest.mark.parametrize('delay, most, expected', [
    (0.5, 3, [0.5, 0.5, 0.5, None]), (40.0, -1, [40.0] * 4), (0.0, 4, [0.0, 0.1, 0.2, 0.4]),
    (0.0, 0, [None]),
])
def test_a_process_that_keeps_failing_waits_for_its_delay_or_longer_and_longer(
        delay, most, expected):
    with pytest.raises(ValueError, match='respawn_delay'):
        ExecuteProcess(cmd=['true'], respawn=True, respawn_delay=math.inf).prepare(
            LaunchContext())
    respawns = _native.RespawnBackoff(delay, most)
    assert [respawns.next_delay(0.1) for _ in expected] == expected
