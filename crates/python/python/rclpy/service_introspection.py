"""States of service introspection."""

from rclpy.impl.named_enum import NamedEnum


class ServiceIntrospectionState(NamedEnum):
    """What the events of a client or server contain."""

    OFF = 0
    METADATA = 1
    CONTENTS = 2
