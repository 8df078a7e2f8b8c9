"""Substitutions in text, and command lines."""

import os

import pytest

from launch import LaunchContext
from launch.actions import ExecuteProcess
from launch.frontend import Parser
from launch.frontend.parse_substitution import InvalidSubstitutionError, parse_substitution
from launch.utilities import perform_substitutions, split_words
from launch.utilities.type_utils import coerce_to_type
from pteros import _native


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
    ('$(var x', '$(var is not closed'),
    ("$(var 'x)", "the quote ' is not closed"),
    ('$()', 'a name is missing'),
    ("$(var 'x'y)", 'a blank is missing between arguments'),
    ('$(var ' * 60 + ')' * 60, 'nested more than 32 deep'),
])
def test_invalid_substitutions_name_the_column(text, reason):
    with pytest.raises(InvalidSubstitutionError, match='at column') as raised:
        parse_substitution(text)
    assert reason in str(raised.value)
    with pytest.raises(RuntimeError, match='Unknown substitution: no-such'):
        parse_substitution('$(no-such x)')


@pytest.mark.parametrize('line, words', [
    ('  $(var x)  b', ['X', 'b']),
    ('"a $(var x) b"c', ['a X bc']),
    (r"""'a b' \\"c\\" $(var no '1 2')d ''""", ['a b', '"c"', '1 2d', '']),
])
def test_command_lines_are_split_as_by_a_shell_but_not_within_substitutions(line, words):
    context = LaunchContext()
    context.launch_configurations['x'] = 'X'
    parsed = ExecuteProcess._parse_cmdline(line, Parser())
    assert [perform_substitutions(context, word) for word in parsed] == words
    with pytest.raises(ValueError, match='quote " is not closed'):
        ExecuteProcess._parse_cmdline('a "b', Parser())


def test_texts_with_bytes_that_are_not_utf_8_stay_as_they_are():
    name = os.fsdecode(b'\xff\xa0\x85')
    assert split_words(f"cat '{name} b' {name}/é€\u00a0c") == [
        'cat', f'{name} b', f'{name}/é€\u00a0c']
    assert coerce_to_type(name, str) == name
    assert coerce_to_type(name, int, can_be_str=True) == name
    with pytest.raises(ValueError):
        coerce_to_type(name, float)
    with pytest.raises(LookupError, match='not UTF-8'):
        _native.find_package(name)
    with pytest.raises(LookupError, match='not UTF-8'):
        _native.find_program('p', name)
    assert _native.node_parameter_arguments(None, [('file', name, '')]) == [
        ('--params-file', name)]
