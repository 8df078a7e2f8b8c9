"""The behaviour tables of the client core, `crates/rcl/tests/behaviour`, in Python."""

import os

import pytest

from pteros import _native
from rclpy.lifecycle.state_machine import LifecycleStateMachine

_CRATES = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_STATUSES = (
    'unknown', 'accepted', 'executing', 'canceling', 'succeeded', 'canceled', 'aborted')


def _rows(table, kind=''):
    path = os.path.join(_CRATES, 'rcl', 'tests', 'behaviour', table)
    with open(path, encoding='utf-8') as lines:
        rows = [line for line in lines if line.startswith(kind) and not line.startswith('#')]
    assert rows
    for row in rows:
        steps, expected = row[len(kind):].split('->')
        yield pytest.param(steps.split(), expected.split(), id=row.strip())


def _id(name):
    return bytes(16) if name == '-' else name.encode() * 16


def _names(ids):
    return [each[:1].decode() for each in ids]


@pytest.mark.parametrize('labels, expected', list(_rows('lifecycle.txt')))
def test_lifecycle(labels, expected):
    machine = LifecycleStateMachine()
    *before, last = labels or ['']
    for label in before:
        machine.trigger_transition_by_label(label, False)
    if expected == ['refused']:
        state = machine.current_state
        with pytest.raises(_native.RCLError, match=f"'{last}' is not possible in the state"):
            machine.trigger_transition_by_label(last, False)
        assert machine.current_state == state
        return
    if last:
        machine.trigger_transition_by_label(last, False)
    assert [machine.current_state[1]] == expected


@pytest.mark.parametrize('statuses, expected', list(_rows('goals.txt', 'goal ')))
def test_goal_transitions(statuses, expected):
    goals = _native.GoalTable(100)
    assert goals.accept(_id('a'), 0)
    assert not goals.accept(_id('a'), 0)
    *before, last = map(_STATUSES.index, statuses)
    for status in before:
        goals.transition(_id('a'), status, 0)
    if expected == ['refused']:
        before = goals.status(_id('a'))
        with pytest.raises(_native.RCLError, match='6161: a goal cannot change from'):
            goals.transition(_id('a'), last, 0)
        assert goals.status(_id('a')) == before
        return
    goals.transition(_id('a'), last, 0)
    assert [_STATUSES[goals.status(_id('a'))]] == expected


def _four_goals():
    goals = _native.GoalTable(100)
    for stamp, name in ((10, 'a'), (20, 'b'), (30, 'c'), (40, 'd')):
        goals.accept(_id(name), stamp)
    for name, status in (('a', 2), ('c', 3), ('d', 2), ('d', 4)):
        goals.transition(_id(name), status, 0)
    return goals


@pytest.mark.parametrize('request_, expected', list(_rows('goals.txt', 'cancel ')))
def test_cancel_rules(request_, expected):
    name, stamp = request_
    code, selected = _four_goals().select_for_cancel(_id(name), int(stamp))
    assert [str(code), *_names(selected)] == expected


@pytest.mark.parametrize('time, expected', list(_rows('goals.txt', 'expire ')))
def test_result_expiry(time, expected):
    goals = _four_goals()
    assert goals.next_expiry() == 100
    gone = _names(goals.expire(int(time[0])))
    assert [name for name in 'abcd' if goals.contains(_id(name))] == expected
    assert sorted(gone + expected) == list('abcd')
