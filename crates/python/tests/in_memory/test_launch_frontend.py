"""Substitutions in text."""

import pytest

from launch import LaunchContext
from launch.frontend.parse_substitution import InvalidSubstitutionError, parse_substitution
from launch.utilities import perform_substitutions


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
