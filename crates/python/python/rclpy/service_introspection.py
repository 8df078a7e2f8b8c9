"""States of service introspection."""

from enum import IntEnum


class ServiceIntrospectionState(IntEnum):
    """What the events of a client or server contain."""

    OFF = 0
    METADATA = 1
    CONTENTS = 2
