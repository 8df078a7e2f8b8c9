"""Each test process has a domain of its own, on this host alone."""

import os
import signal

# A command that a shell runs in the background ignores it, and so would its children.
signal.signal(signal.SIGINT, signal.default_int_handler)

os.environ.setdefault('ROS_AUTOMATIC_DISCOVERY_RANGE', 'LOCALHOST')
os.environ.setdefault('ROS_DOMAIN_ID', str(100 + os.getpid() % 100))
