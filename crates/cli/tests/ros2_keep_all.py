"""Reliable messages that no one may miss, for tests/ros2_programs.

usage: ros2_keep_all.py publish BYTES HZ COUNT|subscribe

`publish` has a publisher of history KEEP_ALL. It waits for two subscriptions, publishes COUNT
messages and prints how many publish calls returned and how many failed.
`subscribe` prints how many messages it has, after each.
"""
import sys
import time

import rclpy
from rclpy.node import Node
from rclpy.qos import HistoryPolicy, QoSProfile, ReliabilityPolicy
from std_msgs.msg import String

KEEP_ALL = QoSProfile(
    depth=0, history=HistoryPolicy.KEEP_ALL, reliability=ReliabilityPolicy.RELIABLE)


def publish(node, size, rate, count):
    """Publish the messages, then print what came of it."""
    publisher = node.create_publisher(String, 'flow', KEEP_ALL)
    print('ready', flush=True)
    while publisher.get_subscription_count() < 2:
        time.sleep(0.01)
    print('matched', flush=True)
    message = String(data='x' * size)
    failed, begin = 0, time.monotonic()
    for number in range(count):
        time.sleep(max(0.0, begin + number / rate - time.monotonic()))
        try:
            publisher.publish(message)
        except Exception as error:
            failed += 1
            if failed == 1:
                print(f'first failure: {error}', flush=True)
    print(f'published {count}, failed {failed}', flush=True)


def main():
    """Publish or subscribe until the process is ended."""
    rclpy.init()
    node = Node(f'keep_all_{sys.argv[1]}')
    received = []

    def receive(message):
        received.append(len(message.data))
        print(f'received {len(received)}.', flush=True)

    if sys.argv[1] == 'publish':
        size, rate, count = map(int, sys.argv[2:5])
        publish(node, size, rate, count)
    else:
        node.create_subscription(String, 'flow', receive, KEEP_ALL)
    rclpy.spin(node)


if __name__ == '__main__':
    main()
