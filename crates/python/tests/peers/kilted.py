"""Additions of Kilted."""

import rclpy
from rclpy.duration import Duration
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.task import Future
from rclpy.timer import TimerInfo
from show import show
from std_msgs.msg import String

infos = []


def function(info: TimerInfo):
    infos.append(info)


with rclpy.init() as block:
    print(type(block).__name__, rclpy.ok())
    with Node('n', namespace='a/b') as node:
        node.create_timer(0.01, function)
        while not infos:
            rclpy.spin_once(node, timeout_sec=1)
        info = infos[0]
        print(info.expected_call_time <= info.actual_call_time, type(info).__name__)
        with node.create_publisher(String, 'x', 10) as publisher:
            print(publisher.topic_name, publisher.logger_name)
print(rclpy.ok(), Publisher[String] is not None, Future[int] is not None)
one = Duration(seconds=1)
for name, sum_ in {
        'add': lambda: one + one, 'sub': lambda: one - Duration(seconds=3), 'mul': lambda: one * 2,
        'float': lambda: one * 1.5, 'inf': lambda: one * float('inf'), 'number': lambda: one + 1,
        'nan': lambda: one * float('nan'), 'reflected': lambda: 2 * one}.items():
    show(name, sum_)
show('info', TimerInfo, expected_call_time=-1)
show('info', TimerInfo, clock_type=1)
context = rclpy.Context()
with rclpy.init(context=context):
    print(context.ok(), rclpy.ok())
print(context.ok())
