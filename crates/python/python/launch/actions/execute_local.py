"""Action: start a process on this host, and see it to its end."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import time
import traceback

import launch.logging
from launch.action import Action
from launch.actions.emit_event import EmitEvent
from launch.actions.opaque_function import UninterruptedFunction
from launch.actions.timer_action import TimerAction
from launch.child_process import ChildProcess, shell_command
from launch.conditions import evaluate_condition_expression
from launch._error_text import describe_error, escape_controls, note_place
from launch.event_handler import EventHandler
from launch.event_handlers import OnProcessExit, OnProcessIO, OnProcessStart, OnShutdown
from launch.events import matches_action
from launch.events.process import (
    ProcessExited, ProcessStarted, ProcessStderr, ProcessStdout, ShutdownProcess, SignalProcess,
)
from launch.launch_description_entity import LaunchDescriptionEntity
from launch.launch_guard import LaunchGuard
from launch.substitutions import LaunchConfiguration
from launch.utilities import (
    is_a_subclass, normalize_to_list_of_substitutions, perform_substitutions,
)
from launch.utilities.type_utils import (
    normalize_typed_substitution, perform_typed_substitution,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    import logging
    from typing import Any, Callable, Dict, List, Optional, Text, Tuple, Union

    from launch.descriptions import Executable
    from launch.events import Shutdown
    from launch.events.process import ProcessIO
    from launch.launch_context import LaunchContext
    from launch.some_entities_type import SomeEntitiesType
    from launch.some_substitutions_type import SomeSubstitutionsType
    from launch.substitution import Substitution

    OnExit = Union[
        SomeEntitiesType, Callable[[ProcessExited, LaunchContext], Optional[SomeEntitiesType]]]

OVERRIDE_OUTPUT_VARIABLE = 'OVERRIDE_LAUNCH_PROCESS_OUTPUT'
"""Environment variable with the output of all processes."""

DEFAULT_TIMEOUT = 5
"""The seconds that a process has to end after SIGINT, and after SIGTERM."""


class _Protocol:
    """The future that has the exit code, where others look for it."""

    def __init__(self, process: ChildProcess) -> None:
        self.complete = process.complete


class ExecuteLocal(Action):
    """
    Starts a process, logs what it writes, and emits the events of processes.

    At the end of the launch the process gets SIGINT, after ``sigterm_timeout`` SIGTERM, and
    after ``sigkill_timeout`` more SIGKILL. All time-outs and delays are in seconds.
    """

    def __init__(
        self,
        *,
        process_description: Executable,
        shell: bool = False,
        sigterm_timeout: SomeSubstitutionsType = LaunchConfiguration(
            'sigterm_timeout', default=DEFAULT_TIMEOUT),
        sigkill_timeout: SomeSubstitutionsType = LaunchConfiguration(
            'sigkill_timeout', default=DEFAULT_TIMEOUT),
        emulate_tty: bool = False,
        output: SomeSubstitutionsType = 'log',
        output_format: Text = '[{this.process_description.final_name}] {line}',
        cached_output: bool = False,
        log_cmd: bool = False,
        on_exit: Optional[OnExit] = None,
        respawn: Union[bool, SomeSubstitutionsType] = False,
        respawn_delay: Optional[float] = None,
        respawn_max_retries: int = -1,
        **kwargs: Any,
    ) -> None:
        """
        Make an action.

        :param shell: Run the command in a shell.
        :param emulate_tty: Give the process a pseudo-terminal each for stdout and stderr.
        :param output: Where output goes: see :func:`launch.logging.get_output_loggers`.
        :param output_format: The format of a line; ``{this}`` is this action.
        :param cached_output: Keep output for :meth:`get_stdout` and :meth:`get_stderr`.
        :param log_cmd: Log the command.
        :param on_exit: Entities to visit when the process has ended, or a function that
            returns them.
        :param respawn: Start the process again when it has ended by itself.
        :param respawn_delay: The time before each start, in seconds. Without one it grows
            to 30 s while the process keeps ending within 10 s.
        :param respawn_max_retries: How often; -1 for ever.
        """
        super().__init__(**kwargs)
        self.__process_description = process_description
        self.__shell = shell
        self.__sigterm_timeout = normalize_to_list_of_substitutions(sigterm_timeout)
        self.__sigkill_timeout = normalize_to_list_of_substitutions(sigkill_timeout)
        self.__emulate_tty = emulate_tty
        output = os.environ.get(OVERRIDE_OUTPUT_VARIABLE, output)
        self.__output: Union[Dict[str, Any], List[Substitution]] = (
            output if isinstance(output, dict) else normalize_to_list_of_substitutions(output))
        self.__output_format = output_format
        self.__is_output_cached = cached_output
        self.__log_cmd = log_cmd
        self.__on_exit = on_exit
        self.__respawn = normalize_typed_substitution(respawn, bool)
        self.__respawn_delay = respawn_delay
        self.__respawn_max_retries = respawn_max_retries
        self.__respawns: Any = None
        self.__respawn_pause: Optional[float] = None
        # Whether the process starts again after the end that is being handled.
        self._starts_again = False
        self.__process_event_args: Optional[Dict[str, Any]] = None
        self._subprocess_transport: Optional[ChildProcess] = None
        self._subprocess_protocol: Optional[_Protocol] = None
        self.__completed_future: Optional[asyncio.Future] = None
        self.__shutdown_future: Optional[asyncio.Future] = None
        self.__escalation: List[TimerAction] = []
        self.__lines: Dict[str, Any] = {}
        self.__cache = {'stdout': b'', 'stderr': b''}
        self.__logger: Optional[logging.Logger] = None
        self.__is_executed = False

    # --- what it is ---------------------------------------------------------------------

    @property
    def process_description(self) -> Executable:
        """The command."""
        return self.__process_description

    @property
    def shell(self) -> bool:
        """Whether the command runs in a shell."""
        return self.__shell

    @property
    def emulate_tty(self) -> bool:
        """Whether the process gets pseudo-terminals."""
        return self.__emulate_tty

    @property
    def sigterm_timeout(self) -> List[Substitution]:
        """The time from SIGINT to SIGTERM, in seconds."""
        return self.__sigterm_timeout

    @property
    def sigkill_timeout(self) -> List[Substitution]:
        """The time from SIGTERM to SIGKILL, in seconds."""
        return self.__sigkill_timeout

    @property
    def output(self) -> Union[Dict[str, Any], List[Substitution]]:
        """Where output goes."""
        return self.__output

    @property
    def process_details(self) -> Optional[Dict[str, Any]]:
        """``name``, ``cmd``, ``cwd``, ``env`` and, once it runs, ``pid``."""
        return self.__process_event_args

    @property
    def return_code(self) -> Optional[int]:
        """The exit code or the negative number of a signal; ``None`` before the end."""
        process = self._subprocess_transport
        return None if process is None else process.get_returncode()

    def get_sub_entities(self) -> List[LaunchDescriptionEntity]:
        """Return the entities of ``on_exit``, if it is a list."""
        return self.__on_exit if isinstance(self.__on_exit, list) else []

    def get_asyncio_future(self) -> Optional[asyncio.Future]:
        """Return a future that is done when the process has ended for good."""
        return self.__completed_future

    def get_stdout(self) -> str:
        """
        Return what the process has written to stdout so far.

        :raises RuntimeError: without ``cached_output``.
        """
        return self.__cached('stdout')

    def get_stderr(self) -> str:
        """
        Return what the process has written to stderr so far.

        :raises RuntimeError: without ``cached_output``.
        """
        return self.__cached('stderr')

    def __cached(self, stream: str) -> str:
        if not self.__is_output_cached:
            raise RuntimeError(
                f'cached output must be true to be able to get {stream}, proc '
                f"'{self.__process_description.name}'")
        return self.__cache[stream].decode(errors='replace')

    # --- start --------------------------------------------------------------------------

    def prepare(self, context: LaunchContext) -> None:
        """Evaluate all substitutions."""
        description = self.__process_description
        description.prepare(context, self)
        self.__process_event_args = {
            'action': self,
            'name': description.final_name,
            'cmd': description.final_cmd,
            'cwd': description.final_cwd,
            'env': description.final_env,
        }
        self.__respawn = perform_typed_substitution(context, self.__respawn, bool)
        if self.__respawn and self.__respawns is None:
            from pteros import _native
            self.__respawns = _native.RespawnBackoff(
                self.__respawn_delay or 0.0, self.__respawn_max_retries)

    def execute(self, context: LaunchContext) -> Optional[List[LaunchDescriptionEntity]]:
        """Start the process when the event is processed; an error before that starts nothing."""
        self.prepare(context)
        if context.plan is not None:
            self._add_to_plan(context)
            return None
        name = self.__process_description.final_name
        if self.__is_executed:
            raise RuntimeError(
                f"ExecuteLocal action '{name}': executed more than once: {self.describe()}")
        self.__is_executed = True
        if context.is_shutdown:
            return None
        missing = self.__missing_program()
        if missing is not None:
            raise RuntimeError(f"process '{name}': {missing}")
        output = self.__output
        if not isinstance(output, dict):
            output = perform_substitutions(context, output)
        loggers = launch.logging.get_output_loggers(name, output)
        self.__logger = launch.logging.get_logger(name)
        for handler in self.__event_handlers(*loggers):
            context.register_event_handler(handler)
        self.__completed_future = context.asyncio_loop.create_future()
        self.__shutdown_future = context.asyncio_loop.create_future()
        context._start(self.__execute_process(context))
        return None

    def __missing_program(self) -> Optional[str]:
        """Return why the program cannot start; ``None`` if it is there."""
        details = self.__process_event_args
        if self.__shell:
            return None
        program = details['cmd'][0]
        folder = details['cwd']
        if folder is not None and not os.path.isdir(folder):
            return f"the working folder '{folder}' is not there"
        if os.sep in program:
            path = os.path.join(folder or '', program)
            if os.path.isfile(path) and os.access(path, os.X_OK):
                return None
            return f"the program '{path}' is not there or cannot be executed"
        if shutil.which(program, path=(details['env'] or {}).get('PATH', os.defpath)) is None:
            return f"the program '{program}' is not on PATH"
        return None

    def _add_to_plan(self, context: LaunchContext, **details: Any) -> None:
        """Add the process, and what follows from its end, to the plan."""
        plan = context.plan
        own = self.__process_event_args
        before = context._first_environment
        missing = self.__missing_program()
        if missing is not None:
            plan.add_missing(f"process '{own['name']}': {missing}", own['cmd'][0])
        changed: Dict[str, Optional[str]] = {
            name: value for name, value in own['env'].items() if before.get(name) != value}
        changed.update((name, None) for name in before if name not in own['env'])
        output = self.__output
        if not isinstance(output, dict):
            output = perform_substitutions(context, output)
        sigterm_timeout, sigkill_timeout = self.__timeouts(context)
        step = plan.add(
            'start', f"start {own['name']}", process=own['name'],
            command=shell_command(own['cmd']) if self.__shell else own['cmd'],
            environment=changed, cwd=own['cwd'],
            output=launch.logging.destinations(output),
            emulate_tty=self.__has_terminals(context),
            respawn={
                'delay_s': self.__respawn_delay or 0.0,
                'retries_max': (
                    None if self.__respawn_max_retries < 0 else self.__respawn_max_retries),
            } if self.__respawn else None,
            sigterm_timeout_s=sigterm_timeout, sigkill_timeout_s=sigkill_timeout,
            **details)
        if callable(self.__on_exit):
            plan.add_unknown(f"{own['name']}: on_exit is a function, which gets the exit code")
        elif self.__on_exit:
            entities = self.__on_exit
            if isinstance(entities, LaunchDescriptionEntity):
                entities = [entities]
            event = plan.add('on_event', 'when it has exited', step, event='exit')
            plan.add_later(event, entities)

    def __event_handlers(
        self, stdout: logging.Logger, stderr: logging.Logger,
    ) -> List[Any]:
        from pteros import _native
        self.__lines = {stream: _native.OutputLines() for stream in self.__cache}

        def flush(event: ProcessExited, context: LaunchContext) -> None:
            for stream, logger in (('stdout', stdout), ('stderr', stderr)):
                rest = self.__lines[stream].take_rest()
                if rest is not None:
                    self.__log_line(logger, rest)

        return [
            EventHandler(
                matcher=lambda event: is_a_subclass(event, ShutdownProcess),
                entities=UninterruptedFunction(function=self.__on_shutdown_process_event)),
            EventHandler(
                matcher=lambda event: is_a_subclass(event, SignalProcess),
                entities=UninterruptedFunction(function=self.__on_signal_process_event)),
            OnProcessIO(
                target_action=self,
                on_stdout=lambda event: self.__write(event, 'stdout', stdout),
                on_stderr=lambda event: self.__write(event, 'stderr', stderr)),
            OnShutdown(on_shutdown=self.__on_shutdown),
            OnProcessExit(target_action=self, on_exit=self.__on_exit or []),
            OnProcessExit(target_action=self, on_exit=flush),
        ]

    async def __execute_process(self, context: LaunchContext) -> None:
        """Start the process, wait for its end, and start it again if it is to respawn."""
        try:
            while await self.__run_once(context):
                if self.__respawn_pause:
                    await asyncio.wait((self.__shutdown_future,), timeout=self.__respawn_pause)
                if self.__shutdown_future.done():
                    break
        finally:
            self.__complete()

    async def __run_once(self, context: LaunchContext) -> bool:
        """Run the process to its end, and return whether it is to start again."""
        details = self.__process_event_args
        command = escape_controls(' '.join(part for part in details['cmd'] if part.strip()))
        if self.__log_cmd:
            self.__logger.info(
                f"process details: cmd='{command}', cwd='{details['cwd']}', "
                f"custom_env?={details['env'] is not None}")
        try:
            process = self.__start_process(context)
        except Exception as error:
            context._set_is_failed()
            note_place(error, self._place, context)
            self.__logger.error(
                f"exception occurred while executing process '{command}' (see debug for "
                f'traceback): {describe_error(error)}')
            self.__logger.debug(traceback.format_exc())
            return False
        pid = process.get_pid()
        since = time.monotonic()
        self.__logger.info(f'process started with pid [{pid}]')
        details['pid'] = pid
        self._subprocess_protocol = _Protocol(process)
        self._subprocess_transport = process
        await context.emit_event(ProcessStarted(**details))
        code = await process.complete
        if code == 0:
            self.__logger.info(f'process has finished cleanly [pid {pid}]')
        else:
            self.__logger.error(
                f"process has died [pid {pid}, exit code {code}, cmd '{command}'].")
        self._starts_again = self.__is_to_respawn(context, time.monotonic() - since)
        await context.emit_event(ProcessExited(returncode=code, **details))
        return self._starts_again and not self.__shutdown_future.done()

    def __is_to_respawn(self, context: LaunchContext, ran: float) -> bool:
        if not self.__respawn or context.is_shutdown or self.__shutdown_future.done():
            return False
        self.__respawn_pause = self.__respawns.next_delay(ran)
        return self.__respawn_pause is not None

    def __has_terminals(self, context: LaunchContext) -> bool:
        override = context.launch_configurations.get('emulate_tty')
        if override is None:
            return bool(self.__emulate_tty)
        return evaluate_condition_expression(
            context, normalize_to_list_of_substitutions(override))

    def __start_process(self, context: LaunchContext) -> ChildProcess:
        details = self.__process_event_args
        if context._guard is None:
            context._guard = LaunchGuard()
        events = {1: ProcessStdout, 2: ProcessStderr}
        return ChildProcess(
            shell_command(details['cmd']) if self.__shell else details['cmd'],
            name=details['name'],
            folder=details['cwd'],
            environment=details['env'],
            has_terminals=self.__has_terminals(context),
            on_output=lambda stream, data: context.emit_event_sync(
                events[stream](text=data, **details)),
            may_read=lambda resume: context._event_queue.has_room(resume),
            guard=context._guard,
            loop=context.asyncio_loop)

    def __complete(self) -> None:
        for timer in self.__escalation:
            timer.cancel()
        if not self.__completed_future.done():
            self.__completed_future.set_result(None)

    # --- output -------------------------------------------------------------------------

    def __log_line(self, logger: logging.Logger, line: str) -> None:
        logger.info(self.__output_format.format(line=line, this=self))

    def __write(self, event: ProcessIO, stream: str, logger: logging.Logger) -> None:
        """Log the whole lines; the last part waits for the rest of its line."""
        if self.__is_output_cached:
            self.__cache[stream] += event.text
        for line in self.__lines[stream].push(event.text):
            self.__log_line(logger, line)

    # --- signals ------------------------------------------------------------------------

    def __on_shutdown(self, event: Shutdown, context: LaunchContext) -> Optional[List[Action]]:
        # Without a terminal, SIGINT to the launch has not reached the process.
        is_needed = not event.due_to_sigint or context.noninteractive
        return self._shutdown_process(context, send_sigint=is_needed)

    def __on_shutdown_process_event(self, context: LaunchContext) -> Optional[List[Action]]:
        if not context.locals.event.process_matcher(self):
            return None
        return self._shutdown_process(context, send_sigint=True)

    def _shutdown_process(
        self, context: LaunchContext, *, send_sigint: bool,
    ) -> Optional[List[Action]]:
        """Return the actions that end the process, unless it ends already."""
        if self.__shutdown_future is None or self.__shutdown_future.done():
            return None
        if self.__completed_future is None or self.__completed_future.done():
            self.__shutdown_future.set_result(None)
            return None
        if self._subprocess_transport is None:
            # It is being started, so SIGINT to the others has not reached it.
            context.register_event_handler(OnProcessStart(
                target_action=self,
                on_start=lambda event, context: self._shutdown_process(
                    context, send_sigint=True)))
            return None
        self.__shutdown_future.set_result(None)
        actions: List[Action] = self.__escalation_timers(context)
        if send_sigint:
            actions.append(self.__signal_action(signal.SIGINT))
        return actions

    def __signal_action(self, number: signal.Signals) -> EmitEvent:
        return EmitEvent(event=SignalProcess(
            signal_number=number, process_matcher=matches_action(self)))

    def __escalation_timers(self, context: LaunchContext) -> List[Action]:
        """Return the timers of SIGTERM and SIGKILL."""
        from pteros import _native
        try:
            timeouts = self.__timeouts(context)
        except Exception as error:
            # The process ends all the same.
            context._set_is_failed()
            self.__logger.error(
                f'sigterm_timeout or sigkill_timeout: {describe_error(error)}; both are '
                f'{DEFAULT_TIMEOUT} seconds instead')
            timeouts = (DEFAULT_TIMEOUT, DEFAULT_TIMEOUT)
        steps = _native.stop_escalation(self.process_details['name'], *timeouts)
        self.__escalation = [
            TimerAction(
                period=after,
                actions=[
                    UninterruptedFunction(
                        function=lambda _, text: self.__logger.error(text), args=(text,)),
                    self.__signal_action(signal.Signals[name])],
                cancel_on_shutdown=False)
            for name, after, text in steps]
        return list(self.__escalation)

    def __timeouts(self, context: LaunchContext) -> Tuple[float, float]:
        """Return the seconds from SIGINT to SIGTERM, and from there to SIGKILL."""
        return (
            float(perform_substitutions(context, self.__sigterm_timeout)),
            float(perform_substitutions(context, self.__sigkill_timeout)))

    def __on_signal_process_event(self, context: LaunchContext) -> None:
        event: Any = context.locals.event
        if not event.process_matcher(self):
            return
        process = self._subprocess_transport
        if self.process_details is None or process is None:
            raise RuntimeError(
                f"signal '{event.signal_name}' for a process that has not been started")
        name = self.process_details['name']
        if process.complete.done():
            self.__logger.debug(
                f"signal '{event.signal_name}' not sent to '{name}' because it has closed "
                'already')
            return
        self.__logger.info(f"sending signal '{event.signal_name}' to process[{name}]")
        process.send_signal(signal.Signals[event.signal_name])
