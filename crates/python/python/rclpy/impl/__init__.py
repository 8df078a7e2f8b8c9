"""Parts of rclpy that programs rarely use by themselves."""
