"""Launches of nodes: parameters, lifecycle transitions, components, timers; YAML."""

import math
import os
import sys

import pytest

from launch import LaunchDescription, LaunchService
from launch.actions import EmitEvent, RegisterEventHandler, Shutdown, TimerAction
from launch.event_handlers import OnProcessIO, OnProcessStart
from launch.events import matches_action
from launch.substitutions import FindExecutable, SubstitutionFailure
from launch.utilities.yaml_reader import YamlError, load_yaml
from launch.utilities.yaml_writer import yaml_text
from launch_ros.actions import (
    ComposableNodeContainer, LifecycleNode, Node, PushROSNamespace, ROSTimer, SetParameter,
    SetParametersFromFile,
)
from launch_ros.actions.load_composable_nodes import get_composable_node_load_request
from launch_ros.descriptions import ComposableNode
from launch_ros.event_handlers import OnStateTransition
from launch_ros.events.lifecycle import ChangeState

PROGRAMS = {
    'printer': '''
import rclpy
from rclpy.node import Node
rclpy.init()
node = Node('unnamed', automatically_declare_parameters_from_overrides=True)
names = ('text', 'list', 'everywhere')
values = [node.get_parameter(name).value for name in names]
values[1] = list(values[1])
print(node.get_fully_qualified_name(), *values, flush=True)
''',
    'managed': '''
import rclpy
from rclpy.lifecycle import LifecycleNode
rclpy.init()
rclpy.spin(LifecycleNode('unnamed'))
''',
    'container': '''
import rclpy
from composition_interfaces.srv import LoadNode
rclpy.init()
node = rclpy.create_node('unnamed')
def load(request, response):
    parameters = {each.name: each.value.integer_value for each in request.parameters}
    print('load', request.plugin_name, request.node_namespace, parameters, flush=True)
    response.success = True
    response.full_node_name = f'{request.node_namespace}/{request.node_name}'
    return response
node.create_service(LoadNode, '~/_container/load_node', load)
rclpy.spin(node)
''',
}


@pytest.fixture
def package(tmp_path, monkeypatch):
    """Make the package 'demo' with the programs."""
    index = tmp_path / 'share/ament_index/resource_index/packages'
    index.mkdir(parents=True)
    (index / 'demo').touch()
    folder = tmp_path / 'lib/demo'
    folder.mkdir(parents=True)
    for name, text in PROGRAMS.items():
        (folder / name).write_text(f'#!{sys.executable}\n{text}')
        (folder / name).chmod(0o755)
    monkeypatch.setenv('AMENT_PREFIX_PATH', str(tmp_path))
    monkeypatch.setenv('ROS_LOG_DIR', str(tmp_path))
    path = os.pathsep.join(each for each in sys.path if each)
    monkeypatch.setenv('PYTHONPATH', path)


def run(*actions):
    """Run actions to their end, at most 30 s; return the lines of all processes."""
    output = []
    service = LaunchService()
    service.include_launch_description(LaunchDescription([
        RegisterEventHandler(OnProcessIO(
            on_stdout=lambda event: output.append(event.text.decode()))),
        TimerAction(period=30.0, actions=[Shutdown(reason='not in time')]),
        *actions]))
    assert service.run() == 0
    return ''.join(output).splitlines()


def test_nodes_get_names_and_parameters(package):
    lines = run(
        PushROSNamespace('robot'), SetParameter('everywhere', 'yes'),
        Node(package='demo', executable='printer', name='one', namespace='arm',
             parameters=[{'text': '1.0', 'list': [1, 2]}], on_exit=[Shutdown()]))
    assert lines == ['/robot/arm/one 1.0 [1, 2] yes']


def test_lifecycle_nodes_change_their_state_by_events(package):
    seen = []
    node = LifecycleNode(package='demo', executable='managed', name='managed', namespace='')

    def change(transition):
        return EmitEvent(event=ChangeState(
            lifecycle_node_matcher=matches_action(node), transition_id=transition))

    def note(event):
        seen.append((event.start_state, event.goal_state))

    class Noted(OnStateTransition):
        def handle(self, event, context):
            note(event)
            return super().handle(event, context)

    run(
        node,
        RegisterEventHandler(OnProcessStart(target_action=node, on_start=[change(1)])),
        RegisterEventHandler(Noted(
            target_lifecycle_node=node, goal_state='inactive', entities=[change(3)])),
        RegisterEventHandler(Noted(
            target_lifecycle_node=node, goal_state='active', entities=[Shutdown()])))
    assert seen == [('configuring', 'inactive'), ('activating', 'active')]


def test_an_autostarted_lifecycle_node_becomes_active(package):
    node = LifecycleNode(
        package='demo', executable='managed', name='auto', namespace='', autostart=True)
    lines = []
    handler = OnStateTransition(
        target_lifecycle_node=node, goal_state='active', entities=[Shutdown()])
    matches = handler.matches
    handler.matches = lambda event: matches(event) and not lines.append('active')
    run(node, RegisterEventHandler(handler))
    assert lines == ['active']


def test_components_are_loaded_again_when_their_container_respawns(package):
    container = ComposableNodeContainer(
        package='demo', executable='container', name='c', namespace='ns', respawn=True,
        composable_node_descriptions=[ComposableNode(
            package='p', plugin='p::A', name='a', namespace='/x', parameters=[{'k': 7}])])
    output = []

    def loads():
        return [line for line in ''.join(output).split('\n')[:-1] if line.startswith('load')]

    def on_stdout(event):
        before = len(loads())
        output.append(event.text.decode())
        if len(loads()) == before:
            return None
        if before == 0:
            event.action._subprocess_transport.kill()
            return None
        return Shutdown()

    run(container, RegisterEventHandler(OnProcessIO(
        target_action=container, on_stdout=on_stdout)))
    assert loads() == ["load p::A /x {'k': 7}"] * 2


def test_a_timer_of_ros_time_fires(package):
    reasons = []

    class Noted(Shutdown):
        def execute(self, context):
            reasons.append('fired')
            super().execute(context)

    run(ROSTimer(period=0.2, actions=[Noted()]))
    assert reasons == ['fired']


@pytest.mark.parametrize('text, expected', [
    ('', None),
    ('a: 1\nb: [x, 2.5, yes, ~]\n', {'a': 1, 'b': ['x', 2.5, True, None]}),
    ('/**:\n  ros__parameters:\n    a.b: -1\n', {'/**': {'ros__parameters': {'a.b': -1}}}),
    ('- - 1\n  - 2\n- k: v\n  l:\n  - w\n', [[1, 2], {'k': 'v', 'l': ['w']}]),
    ('a: |\n  x\n   y\n\n  z\nb: >-\n  f\n  g\n', {'a': 'x\n y\n\nz\n', 'b': 'f g'}),
    ('a: "t\\tu\\x41"\nb: \'it\'\'s\'\n', {'a': 't\tuA', 'b': "it's"}),
    ('a: &x {p: 1}\nb:\n  <<: *x\n  q: 2\n', {'a': {'p': 1}, 'b': {'p': 1, 'q': 2}}),
    ('a: 0x1F\nb: 017\nc: 1e5\nd: 1.0e+5\ne: 1_000\n',
     {'a': 31, 'b': 15, 'c': '1e5', 'd': 1e5, 'e': 1000}),
    ('# c\n---\na: x#y # c\n...\n', {'a': 'x#y'}),
    ('a: !!str 1\n', {'a': '1'}),
    ('- !!int "12"\n- !!float 1\n- ! 1\n- !!null x\n', [12, 1.0, '1', None]),
    ('x: &x {a: 1}\ny: {<<: [*x, {a: 2, b: 3}], b: 4}\n', {'x': {'a': 1}, 'y': {'a': 1, 'b': 4}}),
    ('1: &k a\n"2": *k\ntrue: ~\n*k : b\n', {1: 'a', '2': 'a', True: None, 'a': 'b'}),
])
def test_yaml_is_read_as_yaml_1_1(text, expected):
    assert load_yaml(text) == expected


@pytest.mark.parametrize('text', [
    'a: [1', 'a: b: c', 'a\nb: c', '- a\nb: 1', 'a: 1\n  b: 2', 'a: *b', 'a: @x', "a: 'x",
    'a: !tag x', '---\na\n---\nb\n', 'a: "\\q"', '[' * 5000, '- ' * 5000, '{a: ' * 5000,
    'a: !!int x', 'a: !!bool x', 'a: &a [*a]', '<<: 1', '[a]: b',
    # Aliases that stand for ten others.
    'a: &a0 [x]\n' + ''.join(
        f'b{n}: &a{n + 1} [{", ".join([f"*a{n}"] * 10)}]\n' for n in range(9)),
])
def test_invalid_yaml_is_refused_with_its_place(text):
    with pytest.raises(YamlError, match='^line [0-9]+, column [0-9]+: '):
        load_yaml(text)


@pytest.mark.parametrize('value', [
    'yes', '1', '1e5', '0483', '123E5', 'y', 'nan', 'inf', '[]', '', ' x', "it's", 'a: b', '#x', 'line\nend\t', '-', '2020-01-01', 'ü',
    True, None, 1, -2.5, 1e300, 1e-7, math.inf, [1, 2], ['a', ''], [True], [0.5, math.inf], [],
])
def test_what_is_written_is_read_as_the_same(value):
    assert load_yaml(yaml_text(value)) == value
    assert load_yaml(f'k: {yaml_text(value)}') == {'k': value}
    assert yaml_text(tuple(value) if isinstance(value, list) else value) == yaml_text(value)


@pytest.mark.parametrize('value, written, expected', [
    (1.1, '1.10', '1.10'), (8, '010', '010'), ('0483', '0483', "'0483'"), (90, '1:30', '90'),
    (1000, '1_000', '1000'), ([1, 2], '[1, 2]', '[1, 2]'), (True, 'yes', 'yes'),
])
def test_a_text_stays_as_written_if_a_node_reads_the_same_value(value, written, expected):
    assert yaml_text(value, written) == expected


class ForeignContext:
    """A context of somebody else, as the tests of ROS 2's packages have."""

    def __init__(self):
        self.launch_configurations = {}

    def perform_substitution(self, substitution):
        return substitution.perform(self)


def test_components_and_executables_are_evaluated_in_contexts_of_others(tmp_path):
    for number in (1, 2):
        (tmp_path / f'{number}.yaml').write_text(
            f'/**: {{ros__parameters: {{value_{number}: {number}}}}}')
    context = ForeignContext()
    SetParametersFromFile(str(tmp_path / '1.yaml')).execute(context)
    component = ComposableNode(
        package='any', plugin='any::Any', name='one', parameters=[str(tmp_path / '2.yaml')])
    request = get_composable_node_load_request(component, context)
    assert [each.name for each in request.parameters] == ['value_1', 'value_2']
    assert FindExecutable(name='sh').perform(context).endswith('/sh')
    with pytest.raises(SubstitutionFailure, match='no_such_program'):
        FindExecutable(name='no_such_program').perform(context)


@pytest.mark.parametrize('value, error', [
    (b'bytes', TypeError), ([1, 'a'], TypeError), ([True, 1], TypeError), ([1, 2.5], TypeError),
    ({'a': 1}, TypeError), ([[1]], TypeError), (1 << 63, ValueError), ([1 << 63], ValueError),
])
def test_what_no_parameter_can_be_is_refused(value, error):
    with pytest.raises(error):
        yaml_text(value)
