"""The reference pages, which are written from the docstrings."""

import ast
import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

import api_reference  # noqa: E402


def test_a_run_leaves_the_pages_of_the_sources_alone(tmp_path, monkeypatch):
    (tmp_path / 'gone.md').write_text('of a module that was removed')
    monkeypatch.setattr(sys, 'argv', ['api_reference.py', str(tmp_path)])
    assert api_reference.main() == 0
    assert {page.name for page in tmp_path.iterdir()} == set(api_reference.pages())
    monkeypatch.setattr(sys, 'argv', ['api_reference.py'])
    assert api_reference.main() == 2


def test_there_is_a_page_per_module_and_it_names_public_things_alone():
    pages = api_reference.pages()
    headings = [line for text in pages.values() for line in text.splitlines()
                if line.startswith(('# ', '## '))]
    assert '# rclpy.node' in headings and '## Node' in headings
    assert pages['rclpy.node.md'].startswith('# rclpy.node\n')
    assert not [line for line in headings if '._' in line or line.split()[1].startswith('_')]


def test_enum_members_and_class_constants_are_there():
    text = ''.join(api_reference.pages().values())
    assert '\nVOLATILE = 2\n' in text and '\nWARN = 30\n' in text


def test_constants_of_a_class_are_public_and_short():
    tree = ast.parse(f"class C:\n    A = 1\n    b: int = 2\n    c: int\n    _d = 3\n"
                     f"    __slots__ = ()\n    e.f = 4\n    LONG = '{'x' * 200}'\n")
    lines = api_reference.constants(tree.body[0].body)
    assert lines == ['```python', 'A = 1', 'b: int = 2', 'LONG = ...', '```', '']
    assert api_reference.constants([]) == []


def test_fields_become_a_list():
    lines = api_reference.markdown(
        'Do it.\n\n:param a: One,\n    or :class:`~x.Y`.\n:raises E: if not.\n:return: All.')
    assert lines == [
        'Do it.', '', '- `a`: One,', '  or `x.Y`.', '- raises `E`: if not.', '- returns: All.']


@pytest.mark.parametrize('source, expected', [
    ('def f(self, a: int = 1) -> str: ...', 'def f(a: int=1) -> str'),
    ('async def f(self): ...', 'async def f()'),
    ('@property\ndef f(self) -> int: ...', '@property\ndef f() -> int'),
    ('def f(selfish): ...', 'def f(selfish)'),
])
def test_signature(source, expected):
    assert api_reference.signature(ast.parse(source).body[0]) == expected
