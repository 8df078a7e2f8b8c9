"""Events of processes."""

from launch.events.process.process_exited import ProcessExited
from launch.events.process.process_io import ProcessIO
from launch.events.process.process_matchers import matches_executable, matches_name, matches_pid
from launch.events.process.process_started import ProcessStarted
from launch.events.process.process_stderr import ProcessStderr
from launch.events.process.process_stdin import ProcessStdin
from launch.events.process.process_stdout import ProcessStdout
from launch.events.process.process_targeted_event import ProcessTargetedEvent
from launch.events.process.running_process_event import RunningProcessEvent
from launch.events.process.shutdown_process import ShutdownProcess
from launch.events.process.signal_process import SignalProcess

__all__ = [
    'ProcessExited', 'ProcessIO', 'ProcessStarted', 'ProcessStderr', 'ProcessStdin',
    'ProcessStdout', 'ProcessTargetedEvent', 'RunningProcessEvent', 'ShutdownProcess',
    'SignalProcess', 'matches_executable', 'matches_name', 'matches_pid',
]
