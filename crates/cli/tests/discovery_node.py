# A node of rclpy that publishes on /words, hears /answers, and has a parameter, which is
# read by a service. Argument: `serve`, or `ask` to hear only.
import sys

import rclpy
from rclpy.executors import ExternalShutdownException
from std_msgs.msg import String

rclpy.init()
serves = sys.argv[1] == 'serve'
node = rclpy.create_node('discovery_node' if serves else 'second_node')


def print_heard(message):
    print(f'heard {message.data}', flush=True)


node.create_subscription(String, 'answers', print_heard, 10)
if serves:
    words = node.create_publisher(String, 'words', 10)
    node.create_timer(0.1, lambda: words.publish(String(data='from the server')))
    node.declare_parameter('number', 42)
    print('serving', flush=True)
try:
    rclpy.spin(node)
except (KeyboardInterrupt, ExternalShutdownException):
    pass
