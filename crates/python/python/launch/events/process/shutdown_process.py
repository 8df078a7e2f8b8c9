"""Event: a process is to end."""

from launch.events.process.process_targeted_event import ProcessTargetedEvent


class ShutdownProcess(ProcessTargetedEvent):
    """A process is to end: by SIGINT, later SIGTERM, later SIGKILL."""

    name = 'launch.events.process.ShutdownProcess'
