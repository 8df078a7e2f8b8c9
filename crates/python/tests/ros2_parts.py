"""What the behaviour driver takes from `pteros._native`, made of ROS 2's own packages.

`cargo xtask ros2 behaviour` runs `test_behaviour.py` on the rclpy of a ROS 2, over the
plug-in. So the rows of the tables meet rcl, rclpy and message_filters themselves. A row of
`DIFFERENT` has another answer there, and one of `WITHOUT_ANSWER` none. Their reasons stand
with them: what ROS 2 Jazzy does, and why Pteros does not.
"""

import atexit
import os

import rclpy
import yaml

from action_msgs.msg import GoalInfo
from action_msgs.srv import CancelGoal
from builtin_interfaces.msg import Time as Stamp
from geometry_msgs.msg import PointStamped
from message_filters import ApproximateTimeSynchronizer, SimpleFilter, TimeSynchronizer
from rclpy.clock import ROSClock
from rclpy.impl.implementation_singleton import rclpy_implementation as _rclpy
from rclpy.qos import qos_profile_action_status_default, qos_profile_services_default
from rclpy.time import Time
from rclpy.type_support import check_for_type_support
from std_msgs.msg import Header
from test_msgs.action import Fibonacci
from unique_identifier_msgs.msg import UUID

# Rows up to their arrow.
WITHOUT_ANSWER = {
    'rcl_action has events for its transitions, and none for these statuses': [
        'goal accepted', 'goal unknown'],
    'Clock.sleep_until waits for the next jump if its time has come already': [
        'sleep 10', 'sleep 9'],
    'the timer of the rate is due at the switch, and its thread wakes at any time after': [
        'rate sleep off'],
    'rcl refuses wildcards: they are not implemented': [
        '/*/a:=/b topic a', '*:=/b topic a', '/*:=/b topic a', '/**:=/b topic a',
        '/**/a:=/b topic a', '/**/a:=/b topic x/y/a', '/*/a:=/b topic x/a',
        r'/*/*:=/b/\2 topic a', r'/*/*:=/\2/\1 topic a', r'/**/a:=/b/\1 topic x/a',
        r'/ns/**:=/b/\1 topic x/y', '/*/*:=b topic a'],
    'the middleware decides whether it takes a negative depth': [
        'override /a.publisher.depth:=-1; node / other; pub /a allow=default; profile 1'],
    'message_filters is not told of jumps of the clock': [
        'exact 2 a91 a92 clear a1 b1 b91 b92', 'slop 2,10 a91 a92 clear a1 b2 b93',
        'cache 2 91 clear 1 span=0..99'],
}
WITHOUT_TABLES = {'content_filters.txt': 'rclpy of Jazzy has no content filters'}
DIFFERENT = {
    'rcl of Jazzy counts from the acceptance, so a long goal has no result at its end': [
        'expire 100'],
    'the declared type decides how Pteros reads a text; rcl has decided before': [
        'both override x:=0483; declare x a', 'both override x:=y; declare x a',
        'both override x:=nan; declare x a', "both override x:='1e-3'; declare x 0.5",
        "both override x:='7'; declare x 1", 'both override x:=[1, 2]; declare x [a]',
        'both override x:=[]; declare x [1]',
        'override /a.publisher.reliability:=3; node / other; pub /a allow=default; profile 1'],
    'rcl waits for what has passed of a period when the clock changes its source, where its '
    'comment says: for what is left': [
        'timer 11 off on 11.5 12', 'timer 11 off 5 on 5.9 6', 'timer 11 off off on on 12',
        'timer off cancel on reset 10.9 11',
        'rate sleep 11 off on sleep 12'],
    'rcl makes /ns/talkera of it; a slash must follow ~ (articles/topic_and_service_names)': [
        'topic ~a'],
    'TimeSynchronizer passes on sets that go back in time, and keeps messages of a time '
    'before a jump back': [
        'exact 10 a1 a2 b2 b1', 'exact 10 a1 a2 a3 b2 b1 b3', 'exact 10 a1 b2 b3 a3 a2 b1',
        'exact 10 a1 b1 c2 a2 b2 c1', 'exact 2 a91 a92 b93 b94 a1 a2 a3 b3 a4 b4',
        'exact 2 a91 a92 b89 b90 a1 a2 a3 b3 a4 b4',
        'exact 5 a91 a92 a93 a94 a1 a2 a3 a4 a5 b91 b5',
        'exact 5 a91 a92 a93 a94 a1 a2 a3 a4 a5 a6 b91 b6',
        'exact 3 a91 a92 a1 b1 a2 b2 a3 b3 a4 b4 a5 b91 b92 b93 b5',
        'exact 3 a91 a92 a1 b1 a2 b2 a3 b3 a4 b4 b91',
        'exact 2 a99 a1 b1 a2 b2 a3 b3 b99',
        'slop 2,10 a910 a920 b950 b960 a1 a2 a3 b4',
        'slop 4,10 a910 a920 a1 a2 a3 a4 a5 b915 b6'],
    'tf2 names a stale link above the common ancestor, which the look-up does not need': [
        'set o m 1@1; set a o 1@1 1@3; set b o 4@1 4@2; lookup a b 3',
        'set o m 1@1; set a o 1@1 1@4; set b o 4@2 4@3; lookup a b 4'],
    'tf2 gives an ExtrapolationException without a reason for a link that has been cleared': [
        'set a m 1@1; static b m 4; clear; lookup m a 1'],
    'rcutils leaves the root without a level, so that all is logged; its function for the '
    'default level says that the default counts then': [
        'set root warn; set root unset; effective a',
        '--log-level warn; set root debug; set root unset; effective a'],
    'rclpy warns of a depth of 0, and passes it on': [
        'override /a.publisher.depth:=0; node / other; pub /a allow=default; profile 1'],
    'rclpy takes a negative deadline for none': [
        'override /a.publisher.deadline:=-1; node / other; pub /a allow=deadline; profile 1'],
    'Pteros reads "warning" as "warn"': ['--log-level warning; enabled rows info'],
    'a profile of Pteros has no depth where it keeps all': [
        'pub /a allow=default keep_all; parameters'],
    'Cache does not sort, though its comment says so, and keeps messages of a time before a '
    'jump back': [
        'cache 3 30 10 20 span=0..99 before=99 after=0', 'cache 2 30 40 10 span=0..99',
        'cache 2 30 40 20 35 span=0..99', 'cache 4 1000 1001 1 2 3 4 span=0..9999',
        'cache 4 1000 1001 1 2 3 4 5 span=0..9999 before=9999',
        'cache 4 1000 1 2 1001 3 4 span=0..9999'],
}

RCLError = _rclpy.RCLError

# Of a domain of its own, as the graph of a row shows all nodes of one.
_context = rclpy.Context()
rclpy.init(context=_context, args=[], domain_id=int(os.environ['ROS_DOMAIN_ID']) + 1)
_node = rclpy.create_node('parts', context=_context)


@atexit.register
def _close():
    _node.destroy_node()
    _context.try_shutdown()


def configure_logging(context):
    _rclpy.rclpy_logging_fini()
    _rclpy.rclpy_logging_configure(context)


def load_yaml(text):
    return yaml.safe_load(text)


def read_plain_scalar(text, as_rcl):
    if not as_rcl:
        return yaml.safe_load(text)
    node = rclpy.create_node(
        'texts', context=_context, cli_args=['--ros-args', '-p', f'x:={text}'],
        automatically_declare_parameters_from_overrides=True)
    value = node.get_parameter('x').value
    node.destroy_node()
    return value


class LifecycleStateMachine:
    def __init__(self):
        self._machine = _rclpy.LifecycleStateMachine(_node.handle, False)

    def trigger_transition_by_label(self, label, publish):
        self._machine.trigger_transition_by_label(label, publish)

    @property
    def current_state(self):
        return self._machine.current_state


class GoalTable:
    """The goals of an action server of rcl whose clock shows what a row says."""

    _EVENTS = {2: 'EXECUTE', 3: 'CANCEL_GOAL', 4: 'SUCCEED', 5: 'CANCELED', 6: 'ABORT'}

    def __init__(self, result_timeout_ns):
        check_for_type_support(Fibonacci)
        services = qos_profile_services_default.get_c_qos_profile()
        status = qos_profile_action_status_default.get_c_qos_profile()
        self._clock = ROSClock()
        self._clock._set_ros_time_is_active(True)
        self._goals = {}
        with _node.handle, self._clock.handle:
            self._server = _rclpy.ActionServer(
                _node.handle, self._clock.handle, Fibonacci, 'rows', *[services] * 3,
                services, status, result_timeout_ns * 1e-9)

    def _show(self, now):
        self._clock.set_ros_time_override(
            Time(nanoseconds=now, clock_type=self._clock.clock_type))

    def accept(self, id_, now):
        self._show(now)
        info = GoalInfo(goal_id=UUID(uuid=list(id_)), stamp=Stamp(nanosec=now))
        try:
            self._goals.setdefault(id_, _rclpy.ActionGoalHandle(self._server, info))
        except RCLError:
            return False, None
        return True, None

    def transition(self, id_, status, now):
        self._show(now)
        self._goals[id_].update_goal_state(getattr(_rclpy.GoalEvent, self._EVENTS[status]))
        if status > 3:
            self._server.notify_goal_done()

    def status(self, id_):
        return self._goals[id_].get_status()

    def contains(self, id_):
        return self._server.goal_exists(GoalInfo(goal_id=UUID(uuid=list(id_))))

    def select_for_cancel(self, id_, stamp):
        request = CancelGoal.Request(goal_info=GoalInfo(
            goal_id=UUID(uuid=list(id_)), stamp=Stamp(nanosec=stamp)))
        answer = self._server.process_cancel_request(request, CancelGoal.Response)
        return answer.return_code, [bytes(goal.goal_id.uuid) for goal in answer.goals_canceling]

    def expire(self, now):
        self._show(now)
        return [bytes(goal.goal_id.uuid) for goal in self._server.expire_goals(len(self._goals))]


class Synchronizer:
    def __init__(self, kind, inputs, size, slop):
        self._inputs = [SimpleFilter() for _ in range(inputs)]
        self._filter = (
            TimeSynchronizer(self._inputs, size) if kind == 'exact'
            else ApproximateTimeSynchronizer(self._inputs, size, slop * 1e-9))
        self._filter.registerCallback(lambda *found: self._sets.append(found))

    def add(self, at, stamp, _):
        self._sets = []
        message = PointStamped(header=Header(stamp=Stamp(nanosec=stamp)))
        self._inputs[at].signalMessage(message)
        return [[each.header.stamp.nanosec for each in found] for found in self._sets]
