"""Latched messages of many sizes, for tests/ros2_programs.

usage: ros2_sizes.py publish|subscribe

`publish` publishes one message of each size and keeps them for late joiners.
`subscribe` prints a line for each message whose bytes are those of its size.
"""
import array
import sys

import rclpy
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from std_msgs.msg import UInt8MultiArray

SIZES = [0, 1, 1_000, 64_000, 1_000_000, 8_388_608]
LATCHED = QoSProfile(
    depth=len(SIZES),
    reliability=ReliabilityPolicy.RELIABLE,
    durability=DurabilityPolicy.TRANSIENT_LOCAL,
)


def content(size):
    """Return the bytes of a message: each position is another one."""
    return (bytes(range(251)) * (size // 251 + 1))[:size]


def check(message):
    """Print the size of a message, and whether it arrived whole."""
    data = bytes(message.data)
    state = 'whole' if data == content(len(data)) else 'damaged'
    print(f'size {len(data)} {state}', flush=True)


def main():
    """Publish or subscribe until the process is ended."""
    rclpy.init()
    node = Node(f'sizes_{sys.argv[1]}')
    if sys.argv[1] == 'publish':
        publisher = node.create_publisher(UInt8MultiArray, 'sizes', LATCHED)
        for size in SIZES:
            publisher.publish(UInt8MultiArray(data=array.array('B', content(size))))
        print('published', flush=True)
    else:
        node.create_subscription(UInt8MultiArray, 'sizes', check, LATCHED)
    rclpy.spin(node)


if __name__ == '__main__':
    main()
