"""Launch files of the command pteros.launch: checked, shown, run and ended."""

import json
import os
import signal
import subprocess
import sys
import time

from pteros import _search_path
import pytest

from launch_files import HERE, PYTHON, end, folder, is_running, wait_until  # noqa: F401

HEAD = '''\
from launch import LaunchDescription
from launch.actions import *
from launch.conditions import *
from launch.event_handlers import *
from launch.launch_description_sources import *
from launch.substitutions import *
from launch_ros.actions import *
from launch_ros.descriptions import *
from launch_ros.parameter_descriptions import *
from launch_ros.substitutions import *


def generate_launch_description():
    return LaunchDescription([
'''


def file_of(*actions):
    return HEAD + ',\n'.join(f'        {action}' for action in actions) + '])\n'


def test_a_dry_run_shows_nodes_with_names_parameters_and_remappings(folder):  # noqa: F811
    folder.package('demo', 'talker')
    folder.write('a.launch.py', file_of(
        "DeclareLaunchArgument('ns', default_value='hall')",
        "Node(package='demo', executable='talker', name='t', "
        "namespace=LaunchConfiguration('ns'), remappings=[('a', 'b')], "
        "parameters=[{'rate': 2.0, 'deep': {'list': [1, 2]}}])"))
    result = folder.run('a.launch.py', '--dry-run', '--json', 'ns:=tower')
    assert result.returncode == 0, result.stderr
    plan = json.loads(result.stdout)
    step, = plan['steps']
    assert step['node'] == {
        'package': 'demo', 'executable': 'talker', 'name': 't', 'namespace': '/tower'}
    assert step['parameters'] == [{'rate': 2.0, 'deep.list': [1, 2]}]
    assert step['remaps'] == [['a', 'b']]
    assert step['command'][0].endswith('lib/demo/talker')
    assert step['command'][1:6] == ['--ros-args', '-r', '__node:=t', '-r', '__ns:=/tower']
    assert plan['missing'] == plan['unknown'] == []


def test_a_built_in_node_stands_in_for_a_missing_package(folder, monkeypatch):  # noqa: F811
    folder.write('a.launch.py', file_of(
        "Node(package='twist_mux', executable='twist_mux', arguments=['a'])"))
    monkeypatch.setenv('PTEROS_COMMAND', sys.executable)
    result = folder.run('a.launch.py', '--dry-run', '--json')
    assert result.returncode == 0, result.stderr
    step, = json.loads(result.stdout)['steps']
    assert step['command'][:6] == [
        sys.executable, 'run', 'twist_mux', 'twist_mux', 'a', '--ros-args']
    monkeypatch.setenv('PTEROS_BUILT_IN_NODES', 'off')
    result = folder.run('a.launch.py', '--dry-run', '--json')
    assert "there is no package" in result.stdout + result.stderr


def test_a_dry_run_lists_what_follows_from_events_below_them(folder):  # noqa: F811
    folder.package('demo', 'talker')
    folder.write('a.launch.py', HEAD.replace(
        '    return LaunchDescription([\n',
        "    node = Node(package='demo', executable='talker', on_exit=[Shutdown(reason='end')])\n"
        '    return LaunchDescription([\n') + '''\
        SetLaunchConfiguration('word', 'old'),
        RegisterEventHandler(OnProcessExit(target_action=node, on_exit=[LogInfo(msg='gone')])),
        node,
        TimerAction(period=2.0, actions=[LogInfo(msg=LaunchConfiguration('word'))]),
        RegisterEventHandler(OnProcessStart(
            target_action=node, on_start=[ExecuteProcess(cmd=['true'])])),
        RegisterEventHandler(OnProcessExit(on_exit=lambda event, context: None)),
        OpaqueFunction(function=lambda context: [LogInfo(msg='called')]),
        SetLaunchConfiguration('word', 'new')])
''')
    result = folder.run('a.launch.py', '--dry-run')
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    for above, below in (
            ('    when it has exited', '      shut down: end'),
            # The timer fires when the whole file has been visited.
            ('  after 2 s', '    log: new'),
            # The node has no number yet where the handler stands before it.
            ('  on event OnProcessExit of talker', '    log: gone'),
            ('  on event OnProcessStart of talker-1', '    start true-2')):
        assert lines[lines.index(above) + 1] == below
    assert '  log: called' in lines
    assert 'not known before it runs: on event OnProcessExit: the handler is a function' in (
        result.stdout)


def test_a_check_names_what_is_missing_and_fails(folder):  # noqa: F811
    folder.package('demo')
    folder.write('a.launch.py', file_of(
        "Node(package='demo', executable='talker')",
        "ExecuteProcess(cmd=['no_such_program'])",
        "IncludeLaunchDescription('no_such.launch.py')",
        "LogInfo(msg=Command('no_such_command'))"))
    result = folder.run('a.launch.py', '--check')
    assert result.returncode == 1
    for part in ('talker', 'no_such_program', 'no_such.launch.py', 'no_such_command'):
        assert part in result.stderr
    assert folder.run('a.launch.py', '--dry-run').returncode == 0

    folder.write('b.launch.py', file_of("ExecuteProcess(cmd=['true'])"))
    result = folder.run('b.launch.py', '--check')
    assert (result.returncode, result.stderr) == (0, '')
    assert result.stdout.endswith('b.launch.py: no errors; 1 process, 1 file\n')


SPEEDS = (
    "DeclareLaunchArgument('speed', default_value='1')",
    "LogInfo(msg=['speed ', LaunchConfiguration('speed')])",
    "DeclareLaunchArgument('mode', default_value='a', condition=IfCondition('false'))",
    "IncludeLaunchDescription('inner.launch.py', condition=IfCondition('true'))",
    "LogInfo(msg=LaunchConfiguration('undeclared', default=''))",
    "GroupAction([OpaqueFunction(function=lambda context: "
    "context.launch_configurations.get('function') and None)])")


ALL = (
    'dict(ALL.items())', 'dict(ALL)', '{**ALL}', 'ALL.copy()', 'list(ALL)', 'list(ALL.keys())',
    'list(ALL.values())', 'ALL | {}', '{} | ALL', "ALL.pop('speed')",
    "ALL.setdefault('speed', '1')", "__import__('json').dumps(ALL)")
"""Expressions that read all configurations, or that of 'speed'."""


@pytest.mark.parametrize('mode', [[], ['--check'], ['--dry-run']])
def test_a_misspelt_argument_is_warned_of(folder, mode):  # noqa: F811
    folder.write('inner.launch.py', file_of(
        "DeclareLaunchArgument('inner', default_value='1')"))
    folder.write('a.launch.py', file_of(*SPEEDS))
    folder.write('none.launch.py', file_of("LogInfo(msg='hello')"))
    folder.write('group.launch.py', file_of("GroupAction([LogInfo(msg='hello')])"))
    for index, read in enumerate(ALL):
        folder.write(f'all{index}.launch.py', file_of(
            f"OpaqueFunction(function=lambda context: print({read}))").replace(
                'ALL', 'context.launch_configurations'))
    for words, warning in (
            (['a.launch.py', 'spede:=3'], ('spede', 'did you mean speed?')),
            (['a.launch.py', 'speed:=3', 'iner:=3'], ('iner', 'did you mean inner?')),
            (['a.launch.py', 'Colour:='], ('Colour', 'it has: inner, mode, speed')),
            (['none.launch.py', 'speed:=3'], ('speed', 'it has: none')),
            (['group.launch.py', 'speed:=3'], ('speed', 'it has: none')),
            *(([f'all{index}.launch.py', 'speed:=3'], None) for index in range(len(ALL))),
            (['a.launch.py', 'speed:=3', 'mode:=b', 'inner:=3', 'undeclared:=x', 'function:=x',
              'emulate_tty:=true', 'launch-prefix:=nice'], None)):
        result = folder.run(*words, *mode)
        output = result.stdout + result.stderr
        assert result.returncode == 0, output
        assert ('no file declares' in output) == (warning is not None), output
        if warning is not None:
            name, similar = warning
            word, = (word for word in words if word.startswith(name + ':='))
            assert (
                f'{words[0]}: no file declares the argument "{name}", given as {word}, and '
                f'nothing has looked it up so far; {similar}') in output, output


@pytest.mark.parametrize('files, reason', [
    # A Cargo package that is not built, and one that does not exist.
    (['src/bin/talker.rs'],
     'program "talker" of package "arm" is not built yet; run: cargo build -p arm'),
    ([], 'there is no package "arm"; did you mean "harm"?'),
])
@pytest.mark.parametrize('mode', [[], ['--check']])
def test_the_error_says_why_a_program_is_not_found(folder, files, reason, mode):  # noqa: F811
    folder.package('harm')
    for name in files:
        folder.write('Cargo.toml', '[package]\nname = "arm"\n')
        folder.write(name, '')
    folder.write('a.launch.py', file_of("Node(package='arm', executable='talker')"))
    result = folder.run('a.launch.py', *mode)
    assert result.returncode == 1
    assert reason in result.stdout + result.stderr


@pytest.mark.parametrize('action, words', [
    ("Node(package='demo', executable='no_such')", ['package "demo" has no program "no_such"']),
    ("Node(package='no_such', executable='talker')", ['no package "no_such"']),
    ("ExecuteProcess(cmd=['./no_such_program', '\\x1b[2J'])", ['no_such_program']),
    ("LogInfo(msg=LaunchConfiguration('\\x1b[31mred'))", ['red']),
    ("IncludeLaunchDescription('inner.launch.py')", ['inner.launch.py:2', '\\x1b[7m']),
    ("IncludeLaunchDescription('fifo.launch.xml')", ['fifo.launch.xml', 'not a regular file']),
    ("Node(package='demo', executable='talker', parameters=[ParameterFile('fifo.launch.xml', "
     'allow_substs=True)])', ['fifo.launch.xml']),
])
@pytest.mark.parametrize('mode', [[], ['--check']])
def test_an_error_names_its_line_and_has_no_raw_escape(folder, action, words, mode):  # noqa: F811
    folder.package('demo', 'talker')
    os.mkfifo(folder.path / 'fifo.launch.xml')
    folder.write(
        'inner.launch.py', "def generate_launch_description():\n    raise ValueError('\\x1b[7m')\n")
    path = folder.write('a.launch.py', file_of("LogInfo(msg='first')", action))
    line = HEAD.count('\n') + 2
    result = folder.run('a.launch.py', *mode)
    text = result.stdout + result.stderr
    assert '\x1b' not in text
    assert result.returncode == 1, text
    if not mode or 'Configuration' in action:
        place = [] if 'inner' in action else [f'{path}:{line}']
        for word in (*place, *(each.replace('\\x1b', '\\x1b') for each in words)):
            assert word in text


def test_errors_name_the_line_of_the_launch_file(folder):  # noqa: F811
    path = folder.write('a.launch.py', 'import no_such_module\n')
    result = folder.run('a.launch.py', '--check')
    assert result.returncode == 1
    assert f'error: {path}:1: ModuleNotFoundError' in result.stderr
    path = folder.write('b.launch.py', 'x = (\n')
    assert f'{path}:1: SyntaxError' in folder.run('b.launch.py', '--dry-run').stderr
    result = folder.run('no_such.launch.py')
    assert result.returncode == 2
    assert "there is no launch file 'no_such.launch.py'" in result.stderr


def test_arguments_are_shown_with_those_of_included_files(folder):  # noqa: F811
    folder.write('b.launch.xml', '<launch><arg name="b" default="2" description="of b"/></launch>')
    folder.write('a.launch.py', file_of(
        "DeclareLaunchArgument('a', choices=['x', 'y'], default_value='x')",
        f"IncludeLaunchDescription('{folder.path}/b.launch.xml')"))
    rows = json.loads(folder.run('a.launch.py', '--show-args', '--json').stdout)
    assert [(row['name'], row['default']) for row in rows] == [('a', 'x'), ('b', '2')]
    assert rows[0]['choices'] == ['x', 'y']
    text = folder.run('a.launch.py', '-s').stdout
    assert "'b':\n        of b\n        (default: '2')" in text


def test_python_xml_and_yaml_include_each_other(folder):  # noqa: F811
    folder.package('demo', 'talker')
    folder.write('a.launch.xml', '<launch><include file="$(dirname)/b.launch.yaml">'
                 '<arg name="name" value="n1"/></include><log message="$(dirname)"/></launch>')
    folder.write('b.launch.yaml', '''\
{"launch": [
  {"arg": {"name": "name"}},
  {"group": [
    {"push_ros_namespace": {"namespace": "deep"}},
    {"include": {"file": "$(dirname)/sub/c.launch.py",
                 "arg": [{"name": "name", "value": "$(var name)"}]}}]}]}
''')
    folder.write('sub/c.launch.py', file_of(
        "Node(package='demo', executable='talker', name=LaunchConfiguration('name'))"))
    result = folder.run('a.launch.xml', '--dry-run', '--json')
    assert result.returncode == 0, result.stderr
    plan = json.loads(result.stdout)
    assert plan['steps'][0]['node']['namespace'] == '/deep'
    assert plan['steps'][0]['node']['name'] == 'n1'
    # An include does not change where the file itself lies.
    assert plan['steps'][1]['message'] == str(folder.path)
    assert len(plan['files']) == 3


def test_components_are_shown_with_their_container(folder):  # noqa: F811
    folder.package('rclcpp_components', 'component_container')
    folder.write('a.launch.py', file_of(
        "SetParameter('use_sim_time', True)",
        "ComposableNodeContainer(name='c', namespace='ns', package='rclcpp_components', "
        "executable='component_container', composable_node_descriptions=["
        "ComposableNode(package='p', plugin='p::A', name='a', parameters=[{'x': 1}]), "
        "ComposableNode(package='p', plugin='p::B', condition=IfCondition('false'))])"))
    plan = json.loads(folder.run('a.launch.py', '--dry-run', '--json').stdout)
    start, load = plan['steps']
    assert start['node']['name'] == 'c'
    assert load['container'] == '/ns/c'
    component, = load['components']
    assert component['plugin'] == 'p::A'
    assert component['parameters'] == {'use_sim_time': True, 'x': 1}


def test_a_missing_parameter_file_of_a_component_is_listed(folder):  # noqa: F811
    there = folder.write('there.yaml', '/**:\n  ros__parameters: {y: 2}\n')
    for index, path in enumerate((
            "'none.yaml'", "ParameterFile('none.yaml')",
            "ParameterFile('none.yaml', allow_substs=True)")):
        folder.write('a.launch.py', file_of(
            "LoadComposableNodes(target_container='c', composable_node_descriptions=["
            "ComposableNode(package='p', plugin='p::A', name='a', "
            f"parameters=[{{'x': 1}}, {path}, {there!r}])])"))
        result = folder.run('a.launch.py', '--dry-run', '--json')
        assert result.returncode == 0, result.stderr
        plan = json.loads(result.stdout)
        assert plan['missing'] == ["parameter file 'none.yaml' is not there"]
        assert plan['steps'][0]['components'][0]['parameters'] == {'x': 1, 'y': 2}
    folder.write('b.launch.py', file_of(
        "SetParametersFromFile('none.yaml')",
        "LoadComposableNodes(target_container='c', composable_node_descriptions=["
        "ComposableNode(package='p', plugin='p::A', name='a')])"))
    result = folder.run('b.launch.py', '--dry-run', '--json')
    assert 'none.yaml' in json.loads(result.stdout)['missing'][0], result.stderr


def test_an_error_in_the_file_starts_nothing(folder):  # noqa: F811
    folder.write('a.launch.py', file_of(
        folder.process('first'), "LogInfo(msg=LaunchConfiguration('no_such'))"))
    result = folder.run('a.launch.py')
    assert result.returncode == 1
    assert "launch configuration 'no_such' does not exist" in result.stdout
    assert not (folder.state / 'first').exists()
    folder.write('b.launch.py', file_of(
        folder.process('first'), "ExecuteProcess(cmd=['no_such_program'])"))
    result = folder.run('b.launch.py')
    assert result.returncode == 1
    assert 'no_such_program' in result.stdout
    assert not (folder.state / 'first').exists()


def test_ctrl_c_ends_all_processes_and_what_they_left_behind(folder):  # noqa: F811
    folder.write('a.launch.py', file_of(folder.process('one'), folder.process('two', 'daemon')))
    launch = folder.start('a.launch.py')
    try:
        pids = [folder.pid(name) for name in ('one', 'two', 'two_daemon')]
        launch.send_signal(signal.SIGINT)
        output, _ = launch.communicate(timeout=60)
        assert launch.returncode == 0, output
        assert not any(is_running(pid) for pid in pids)
    finally:
        end(launch)


def test_a_process_that_ignores_signals_is_killed_after_the_timeouts(folder):  # noqa: F811
    folder.write('a.launch.py', file_of(
        "SetLaunchConfiguration('sigterm_timeout', '0.1')",
        "SetLaunchConfiguration('sigkill_timeout', '0.1')", folder.process('deaf', 'ignores')))
    launch = folder.start('a.launch.py')
    try:
        pid = folder.pid('deaf')
        launch.send_signal(signal.SIGTERM)
        output, _ = launch.communicate(timeout=60)
        assert "escalating to 'SIGTERM'" in output
        assert "escalating to 'SIGKILL'" in output
        assert not is_running(pid)
    finally:
        end(launch)


def test_nothing_outlives_a_launcher_that_is_killed(folder):  # noqa: F811
    folder.write('a.launch.py', file_of(
        folder.process('one'), folder.process('deaf', 'ignores', 'daemon')))
    launch = folder.start('a.launch.py')
    try:
        pids = [folder.pid(name) for name in ('one', 'deaf', 'deaf_daemon')]
        launch.send_signal(signal.SIGKILL)
        launch.wait()
        wait_until(lambda: not any(is_running(pid) for pid in pids), 'all have ended')
    finally:
        end(launch)


def test_a_process_that_fails_gives_the_exit_code_1(folder):  # noqa: F811
    folder.write('a.launch.py', file_of("ExecuteProcess(cmd=['false'], on_exit=[Shutdown()])"))
    assert folder.run('a.launch.py').returncode == 1
    folder.write('b.launch.py', file_of("ExecuteProcess(cmd=['true'])"))
    assert folder.run('b.launch.py').returncode == 0


def test_all_output_of_a_process_arrives(folder):  # noqa: F811
    folder.write('a.launch.py', file_of(
        "ExecuteProcess(cmd=['seq', '20000'], output='screen')",
        """ExecuteProcess(cmd=['sh', '-c', 'head -c 1500000 /dev/zero | tr "\\\\0" x'],
                       name='long', output='screen')"""))
    result = folder.run('a.launch.py')
    assert result.returncode == 0, result.stdout[-1000:]
    lines = result.stdout.splitlines()
    numbers = [line.split('] ')[1] for line in lines if line.startswith('[seq-1] ')]
    assert numbers == [str(number) for number in range(1, 20001)]
    # A line without an end is logged in parts.
    parts = [line.split('] ')[1] for line in lines if line.startswith('[long-2] ')]
    assert ''.join(parts) == 'x' * 1500000
    assert len(parts) > 1


def test_temporary_parameter_files_are_deleted_at_the_end(folder, tmp_path):  # noqa: F811
    folder.package('demo')
    path = folder.write('prefix/lib/demo/reader', '#!/bin/sh\nfor last; do :; done\ncat "$last"\n')
    (folder.path / 'prefix/lib/demo/reader').chmod(0o755)
    folder.write('a.launch.py', file_of(
        "Node(package='demo', executable='reader', output='screen', "
        "parameters=[{'text': 'yes', 'number': 1.5}])"))
    result = folder.run('a.launch.py')
    assert result.returncode == 0, result.stdout
    assert "text: 'yes'" in result.stdout and 'number: 1.5' in result.stdout
    command = json.loads(folder.run('a.launch.py', '--dry-run', '--json').stdout)
    file = command['steps'][0]['command'][-1]
    assert 'launch_params_' in file
    assert not __import__('os').path.exists(file), path


@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_a_process_that_writes_without_an_end_does_not_delay_the_end(
    folder, number,  # noqa: F811
):
    folder.write('a.launch.py', file_of(
        "ExecuteProcess(cmd=['yes', 'a line of some length'], name='chatty', output='screen')",
        # Its descendant writes on after its end.
        "ExecuteProcess(cmd=['sh', '-c', 'yes left & sleep 0.3'], name='left', output='log')",
        folder.process('one')))
    with open(folder.path / 'output', 'wb') as output:
        launch = subprocess.Popen(
            folder.command('a.launch.py'), cwd=folder.path, env=folder.environment(),
            stdout=output, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        folder.pid('one')
        log = folder.path / 'output'
        wait_until(lambda: log.stat().st_size > 1 << 19, 'it writes')
        sent = time.monotonic()
        launch.send_signal(number)
        launch.wait(20)
        assert time.monotonic() - sent < 10.0
        assert b'[chatty-1] a line of some length' in log.read_bytes()
    finally:
        end(launch)


START = HERE.parent.parent / 'cli/src/launch/start.py'


@pytest.mark.parametrize('entry', ['', '.'])
def test_modules_of_the_user_do_not_replace_those_of_python(folder, entry):  # noqa: F811
    start = START.read_text()
    for name in ('json', 'logging', 'types', 'argparse', 'asyncio', 'rclpy'):
        folder.write(f'{name}.py', f"raise ImportError('the module {name} of the user')\n")
    folder.write('a.launch.py', file_of("ExecuteProcess(cmd=['true'])"))
    environment = folder.environment()
    environment['PYTHONPATH'] += os.pathsep + entry
    for words in (['--probe'], ['a.launch.py']):
        result = subprocess.run(
            [sys.executable, '-c', start, *words], cwd=folder.path, env=environment, text=True,
            capture_output=True, timeout=60)
        assert result.returncode == 0, result.stdout + result.stderr


def test_python_m_takes_no_modules_of_the_current_folder(folder):  # noqa: F811
    for name in ('json', 'logging', 'argparse', 'asyncio', 'tempfile', 'rclpy', 'launch'):
        folder.write(f'{name}.py', f"raise ImportError('the module {name} of the user')\n")
    folder.write('a.launch.py', file_of("ExecuteProcess(cmd=['true'])"))
    result = subprocess.run(
        [sys.executable, '-m', 'pteros.launch', 'a.launch.py'], cwd=folder.path,
        env=folder.environment(), text=True, capture_output=True, timeout=60)
    assert result.returncode == 0, result.stdout + result.stderr


def test_python_s_library_comes_first_and_the_current_folder_last(monkeypatch, tmp_path):
    library = os.path.dirname(os.__file__)
    monkeypatch.chdir(tmp_path)
    own = str(PYTHON)
    for before, after in (
            (['', '/a', library, own, '/b'], [library, own, '/a', '/b']),
            ([str(tmp_path), '/a', library, '/b'], [library, own, '/a', '/b', str(tmp_path)])):
        monkeypatch.setattr(sys, 'path', before)
        _search_path.prefer_own_packages()
        assert sys.path == after


def without_the_mark(text):
    """Return an ExecuteProcess whose program does not get the launch's environment."""
    return text.replace("cmd=['", "cmd=['env', '-i', '")


def test_a_process_without_the_mark_does_not_outlive_a_launcher_that_is_killed(
    folder,  # noqa: F811
):
    folder.write('a.launch.py', file_of(*(
        without_the_mark(folder.process(name, *words))
        for name, words in (('one', ()), ('deaf', ('ignores',)), ('ended', ())))))
    launch = folder.start('a.launch.py')
    pids = []
    try:
        pids = [folder.pid(name) for name in ('one', 'deaf', 'ended')]
        os.kill(pids.pop(), signal.SIGKILL)
        launch.send_signal(signal.SIGKILL)
        launch.wait()
        wait_until(lambda: not any(is_running(pid) for pid in pids), 'all have ended')
    finally:
        end(launch)
        kill_all(pids)


def kill_all(pids):
    for pid in pids:
        if is_running(pid):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize('number', [signal.SIGKILL, signal.SIGINT])
def test_what_a_process_has_left_without_the_mark_does_not_outlive_the_launch(
    folder, number,  # noqa: F811
):
    left = f'env -i {sys.executable} {folder.program} left {folder.state} ignores'
    folder.write('a.launch.py', file_of(
        f"ExecuteProcess(cmd=['sh', '-c', '{left} & echo shell has ended'], output='screen')",
        folder.process('one')))
    launch = folder.start('a.launch.py')
    pids = []
    try:
        pids = [folder.pid(name) for name in ('left', 'one')]
        output = []
        while 'process has finished cleanly' not in ''.join(output):
            output.append(launch.stdout.readline())
            assert output[-1], ''.join(output)
        launch.send_signal(number)
        launch.wait(60)
        wait_until(lambda: not any(is_running(pid) for pid in pids), 'all have ended')
    finally:
        end(launch)
        kill_all(pids)


def watchdog_of(launch):
    """Return the process id of a launch's watchdog."""
    for name in os.listdir('/proc'):
        if name.isdecimal():
            try:
                with open(f'/proc/{name}/cmdline') as line, open(f'/proc/{name}/stat') as stat:
                    parent = int(stat.read().rpartition(')')[2].split()[1])
                    if parent == launch.pid and '_watchdog.py' in line.read():
                        return int(name)
            except OSError:
                pass
    return None


def test_a_stopped_watchdog_does_not_keep_the_launch_from_ending(folder):  # noqa: F811
    folder.write('a.launch.py', file_of(folder.process('one')))
    launch = folder.start('a.launch.py')
    watchdog = None
    try:
        pid = folder.pid('one')
        watchdog = watchdog_of(launch)
        os.kill(watchdog, signal.SIGSTOP)
        launch.send_signal(signal.SIGINT)
        launch.communicate(timeout=30)
        assert launch.returncode == 0
        assert not is_running(pid) and not is_running(watchdog)
    finally:
        end(launch)
        kill_all([watchdog] if watchdog else [])


# --- interruption -----------------------------------------------------------------------

def endless(folder, kind):  # noqa: F811
    """Return a launch file that is evaluated without an end, once the file `runs` is there."""
    wait = f"open({str(folder.state / 'runs')!r}, 'w').close(); time.sleep(1000)"
    if kind == 'file':
        return HEAD.replace('def generate', f'import time\n{wait}\n\n\ndef generate') + '])\n'
    if kind == 'function':
        loop = wait.replace('time.sleep(1000)', '[None for _ in iter(int, 1)]')
        return HEAD.replace(
            'def generate', f'import time\ndef wait(context):\n    {loop}\n\n\ndef generate') + (
            f'{folder.process("one")}, OpaqueFunction(function=wait)])\n')
    words = ' '.join([sys.executable, folder.program, 'runs', str(folder.state)])
    return HEAD + f'{folder.process("one")}, LogInfo(msg=Command({words!r}))])\n'


def end_of_interrupted(launch, number, folder):  # noqa: F811
    wait_until((folder.state / 'runs').exists, 'it is evaluated')
    sent = time.monotonic()
    launch.send_signal(number)
    output, _ = launch.communicate(timeout=60)
    assert time.monotonic() - sent < 10.0
    assert 'Traceback' not in output
    text = (folder.state / 'runs').read_text()
    assert not text or not is_running(int(text))
    assert not (folder.state / 'one').exists()
    return output


@pytest.mark.parametrize('kind', ['file', 'function', 'command'])
@pytest.mark.parametrize('number', [signal.SIGINT, signal.SIGTERM])
def test_a_signal_interrupts_the_evaluation_of_a_file(folder, kind, number):  # noqa: F811
    folder.write('a.launch.py', endless(folder, kind))
    launch = folder.start('a.launch.py')
    try:
        output = end_of_interrupted(launch, number, folder)
        assert launch.returncode == 0, output
        assert 'interrupted while launch files were evaluated' in output
    finally:
        end(launch)


@pytest.mark.parametrize('kind', ['file', 'command'])
def test_ctrl_c_interrupts_a_dry_run(folder, kind):  # noqa: F811
    folder.write('a.launch.py', endless(folder, kind))
    launch = folder.start('a.launch.py', '--dry-run')
    try:
        output = end_of_interrupted(launch, signal.SIGINT, folder)
        assert launch.returncode == 130, output
    finally:
        end(launch)


@pytest.mark.parametrize('words', [(), ('--dry-run',)])
def test_a_command_does_not_outlive_a_launcher_that_is_killed(folder, words):  # noqa: F811
    folder.write('a.launch.py', endless(folder, 'command'))
    launch = folder.start('a.launch.py', *words)
    pid = None
    try:
        pid = folder.pid('runs')
        launch.send_signal(signal.SIGKILL)
        launch.wait()
        wait_until(lambda: not is_running(pid), 'the command has ended')
    finally:
        end(launch)
        kill_all([pid] if pid else [])


def test_a_command_that_takes_too_long_is_ended(folder):  # noqa: F811
    folder.write('a.launch.py', file_of(
        "DeclareLaunchArgument('command_timeout', default_value='0.1')",
        folder.process('one'), "LogInfo(msg=Command('sleep 1000'))"))
    result = folder.run('a.launch.py')
    assert result.returncode == 1
    assert (
        "the command 'sleep 1000' has not ended within 0.1 s; the launch configuration "
        "'command_timeout' gives it more") in result.stdout
    assert not (folder.state / 'one').exists()
    for value in ('0', 'nan', 'soon', 'inf'):
        result = folder.run('a.launch.py', '--check', f'command_timeout:={value}')
        assert result.returncode == 1
        assert f"'command_timeout' is '{value}'; it must be a number" in result.stderr


@pytest.mark.parametrize('words', [(), ('--check',)])
def test_a_command_that_writes_too_much_is_ended(folder, words):  # noqa: F811
    folder.write('a.launch.py', file_of(
        folder.process('one'), "LogInfo(msg=Command('yes a line of a robot description'))"))
    result = folder.run('a.launch.py', *words)
    assert result.returncode == 1
    assert (
        "the command 'yes a line of a robot description' has written more than 64 MiB; let it "
        'write to a file') in result.stdout + result.stderr
    assert not (folder.state / 'one').exists()


def test_output_of_a_command_that_is_no_text_is_named(folder):  # noqa: F811
    folder.write('program.py', "import os\nos.write(1, b'ab' + bytes([255]))\n")
    words = f'{sys.executable} program.py'
    folder.write('a.launch.py', file_of(f'LogInfo(msg=Command({words!r}))'))
    result = folder.run('a.launch.py', '--check')
    assert result.returncode == 1
    assert 'has written no text in utf-8: invalid start byte at byte 2' in result.stderr.lower()


def test_a_command_gets_its_lines_with_unix_ends_and_all_of_its_output(folder):  # noqa: F811
    folder.write('program.py', 'import sys\nsys.stdout.write("x\\r\\n" * 200000 + "end")\n')
    folder.write('a.launch.py', HEAD.replace('def generate', '''\
def check(context):
    text = Command(f'{sys.executable} program.py').perform(context)
    return [LogInfo(msg=f"{len(text)} {text.count('x')} {text[-3:]}")]


def generate''').replace('from launch import', 'import sys\nfrom launch import') + (
        '        OpaqueFunction(function=check)])\n'))
    result = folder.run('a.launch.py')
    assert result.returncode == 0, result.stdout
    assert '400003 200000 end' in result.stdout


def temporary(folder):  # noqa: F811
    """Return the names in the folder of temporary files, which is made at first."""
    path = folder.path / 'tmp'
    path.mkdir(exist_ok=True)
    return sorted(os.listdir(path))


def with_parameters(folder, *actions):  # noqa: F811
    """Write a launch file with two nodes whose parameters are in temporary files."""
    folder.package('demo', 'talker')
    folder.write('rate.yaml', '''{"/**": {"ros__parameters": {"rate": $(env RATE '2.0')}}}''')
    folder.write('a.launch.py', file_of(
        "Node(package='demo', executable='talker', parameters=[{'rate': 1.5}])",
        "Node(package='demo', executable='talker', parameters=[ParameterFile('rate.yaml', "
        'allow_substs=True)])', *actions).replace(
            'from launch_ros.substitutions', 'from launch_ros.parameter_descriptions import *\n'
            'from launch_ros.substitutions'))


@pytest.mark.parametrize('action, code', [
    ('TimerAction(period=0.1, actions=[Shutdown()])', 0),
    ("LogInfo(msg=Command('false'))", 1),
    ('OpaqueFunction(function=lambda context: 1 / 0)', 1)])
def test_the_end_of_a_launch_leaves_no_temporary_files(
    folder, action, code, monkeypatch,  # noqa: F811
):
    monkeypatch.setenv('TMPDIR', str(folder.path / 'tmp'))
    assert temporary(folder) == []
    with_parameters(folder, action)
    result = folder.run('a.launch.py')
    assert result.returncode == code, result.stdout
    assert temporary(folder) == []


def test_temporary_files_of_a_launcher_that_is_killed_are_deleted(
    folder, monkeypatch,  # noqa: F811
):
    monkeypatch.setenv('TMPDIR', str(folder.path / 'tmp'))
    assert temporary(folder) == []
    with_parameters(folder, folder.process('one'))
    launch = folder.start('a.launch.py')
    try:
        folder.pid('one')
        files = [name for path in temporary(folder) for name in os.listdir(
            folder.path / 'tmp' / path)]
        assert len(files) == 2 and all(name.startswith('launch_params_') for name in files)
        launch.send_signal(signal.SIGKILL)
        launch.wait()
        wait_until(lambda: temporary(folder) == [], 'the watchdog has deleted them')
    finally:
        end(launch)
