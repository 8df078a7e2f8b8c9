"""Timers and jump callbacks of simulated time."""

import rclpy
from rclpy.clock import ClockChange, JumpThreshold, ROSClock, TimeJump
from rclpy.duration import Duration
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.time import Time
from show import show

STORIES = {
    'in step': [10.5, 11, 12, 12.4, 13.1],
    'forward by whole periods': [13, 13.5, 14, 20, 20.5],
    'forward by part of a period': [13.3, 14, 20.7, 21],
    'far back': [11, 5, 5.5, 6, 7],
    'a little back': [11, 11.5, 11.2, 12, 12.2, 12.9],
    'back to zero': [11, 0, 1, 2],
    'cancelled': [11, 'cancel', 5, 7, 'reset', 7.5, 8, 9],
    'cancelled twice': [11, 'cancel', 13, 5, 'reset', 6, 7],
    'reset': [11, 5, 5.5, 'reset', 6, 6.5, 7],
    'another period': [11, (0.5,), 5, 5.5, 6, 'reset', 6.2, 6.5],
    'back and forward': [11, 2, 50, 50.2, 51, 1, 2],
}


def set_time(clock, seconds):
    clock.set_ros_time_override(
        Time(nanoseconds=round(seconds * 1e9), clock_type=clock.clock_type))


def play(node, executor, steps):
    clock = ROSClock()
    clock._set_ros_time_is_active(True)
    set_time(clock, 10)
    calls = []
    timer = node.create_timer(1.0, lambda: calls.append(1), clock=clock)
    told = []
    for step in steps:
        if isinstance(step, str):
            getattr(timer, step)()
        elif isinstance(step, tuple):
            timer.timer_period_ns = round(step[0] * 1e9)
        else:
            set_time(clock, step)
        for _ in range(8):
            executor.spin_once(timeout_sec=0.005)
        told.append((step, len(calls), timer.time_until_next_call(), timer.is_ready()))
    node.destroy_timer(timer)
    return told


def print_jump(jump):
    print('jump', str(jump.clock_change), int(jump.clock_change), jump.delta.nanoseconds)


rclpy.init()
node = Node('jumps')
executor = SingleThreadedExecutor()
executor.add_node(node)
for name, steps in STORIES.items():
    print(name, play(node, executor, steps))

clock = ROSClock()
handle = clock.create_jump_callback(
    JumpThreshold(min_forward=Duration(seconds=1), min_backward=Duration(seconds=-1)),
    pre_callback=lambda: print('before'), post_callback=print_jump)
set_time(clock, 5)
clock._set_ros_time_is_active(True)
for seconds in (5, 6, 6.5, 3, 2.5, 10):
    print(seconds)
    set_time(clock, seconds)
    print(clock.now())
clock._set_ros_time_is_active(True)
clock._set_ros_time_is_active(False)
handle.unregister()
clock._set_ros_time_is_active(True)
one, back = Duration(seconds=1), Duration(seconds=-1)
for forward, backward, on_change in (
        (None, None, False), (back, None, True), (None, one, True), (one, back, False)):
    show('threshold', lambda: JumpThreshold(
        min_forward=forward, min_backward=backward, on_clock_change=on_change).on_clock_change)
show('jump', TimeJump, 1, one)
show('jump', lambda: TimeJump(ClockChange.ROS_TIME_ACTIVATED, one).delta.nanoseconds)
