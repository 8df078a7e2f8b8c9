"""Substitutions in text, and YAML without a YAML library."""

import math

import pytest

from launch import LaunchContext
from launch.frontend.parse_substitution import InvalidSubstitutionError, parse_substitution
from launch.utilities import perform_substitutions
from launch.utilities.yaml_reader import DEPTH_MAX, YamlError, load_yaml
from launch.utilities.yaml_writer import dump_yaml


@pytest.fixture(autouse=True)
def _log_folder(tmp_path, monkeypatch):
    monkeypatch.setenv('ROS_LOG_DIR', str(tmp_path))


@pytest.mark.parametrize('text, expected', [
    ('plain', 'plain'),
    ('a$(var x)b', 'aXb'),
    (r'\$(var x) $x', '$(var x) $x'),
    # Results of ROS 2 Jazzy.
    (r'\\$(var x)', r'\$(var x)'),
    (r'\\\$(var x)', r'\$(var x)'),
    (r'"a\\nb"', r'"a\nb"'),
    (r'$(var no "a\nb")', 'anb'),
    ('a\\\nb', 'a\\\nb'),
    ('$(var no a\tb)', 'a\tb'),
    ('$(var no default)', 'default'),
    ("$(var no 'two words')", 'two words'),
    ('$(var no "a $(var x) b")', 'a X b'),
    ("$(eval '1 + $(var one)')", '2'),
    (r'$(eval "\'$(var x)\' == \'X\'")', 'True'),
    ('$(if $(equals $(var one) 1.0) yes no)', 'yes'),
    ('$(any false $(not true) 1)', 'true'),
    ('$(path-join a $(var x) c.yaml)', 'a/X/c.yaml'),
    ("$(string-join ', ' a $(var x))", 'a, X'),
])
def test_substitutions_in_text(text, expected):
    context = LaunchContext()
    context.launch_configurations.update(x='X', one='1')
    assert perform_substitutions(context, parse_substitution(text)) == expected


@pytest.mark.parametrize('text, reason', [
    ('$(var x', "')' of $(var"),
    ("$(var 'x)", "the closing ' is missing"),
    ('$()', 'no name'),
    ("$(var 'x'y)", 'follows a quoted argument'),
    ('$(var ' * 60 + ')' * 60, 'lie in each other'),
])
def test_invalid_substitutions_name_the_column(text, reason):
    with pytest.raises(InvalidSubstitutionError, match='at column') as raised:
        parse_substitution(text)
    assert reason in str(raised.value)
    with pytest.raises(RuntimeError, match='Unknown substitution: no-such'):
        parse_substitution('$(no-such x)')


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
])
def test_yaml_is_read_as_yaml_1_1(text, expected):
    assert load_yaml(text) == expected


@pytest.mark.parametrize('text', [
    'a: [1', 'a: b: c', 'a\nb: c', '- a\nb: 1', 'a: 1\n  b: 2', 'a: *b', 'a: @x', "a: 'x",
    'a: !tag x', '---\na\n---\nb\n', 'a: "\\q"', '[' * (DEPTH_MAX + 2), '- ' * (DEPTH_MAX + 2),
    '{a: ' * 5000,
])
def test_invalid_yaml_is_refused_with_its_place(text):
    with pytest.raises(YamlError, match='^line [0-9]+, column [0-9]+: '):
        load_yaml(text)


@pytest.mark.parametrize('value', [
    'yes', '1', '1e5', '0483', '123E5', 'y', 'nan', 'inf', '[]', '', ' x', "it's", 'a: b', '#x', 'line\nend\t', '-', '2020-01-01', 'ü',
    True, None, 1, -2.5, 1e300, 1e-7, math.inf, [1, 2], ['a', ''], {'a': {'b.c': [True]}}, [],
])
def test_what_is_written_is_read_as_the_same(value):
    assert load_yaml(dump_yaml(value)) == value
    assert load_yaml(dump_yaml({'k': value})) == {'k': value}
