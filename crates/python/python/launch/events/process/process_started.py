"""Event: a process has started."""

from launch.events.process.running_process_event import RunningProcessEvent


class ProcessStarted(RunningProcessEvent):
    """A process has started."""

    name = 'launch.events.process.ProcessStarted'
