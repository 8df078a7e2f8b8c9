import rclpy
from rclpy.executors import ExternalShutdownException
from std_msgs.msg import String


def main():
    rclpy.init()
    node = rclpy.create_node('listener')
    logger = node.get_logger()
    node.create_subscription(String, 'chatter', lambda message: logger.info(f'I heard: "{message.data}"'), 10)
    try:
        rclpy.spin(node)
    except (KeyboardInterrupt, ExternalShutdownException):
        pass
    finally:
        node.destroy_node()
        rclpy.try_shutdown()


if __name__ == '__main__':
    main()
