"""
Launch plan: what a launch would do, found by a dry run.

A launch context with a plan is visited as in a launch. Actions that would start or change
something add a step to the plan instead. OpaqueFunctions, substitutions and commands of
substitutions are carried out. What follows from an event is evaluated after all else, as it
would be at the time of the event, and listed below the event.
"""

from __future__ import annotations

import collections
import contextlib
import shlex

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Deque, Dict, Iterable, Iterator, List, Optional, Set, Tuple

    from launch.launch_context import LaunchContext
    from launch.launch_description_entity import LaunchDescriptionEntity

STEPS_MAX = 10_000
"""The largest number of steps. A launch that goes on for ever reaches it."""


class PlanStep:
    """
    A step: 'start', 'load', 'timer', 'on_event', 'log', 'shutdown', 'event' or 'coroutine'.

    ``details`` are values for JSON; ``steps`` follow from this step.
    """

    def __init__(self, kind: str, line: str, details: Dict[str, Any]) -> None:
        self.kind = kind
        self.line = line
        self.details = details
        self.steps: List[PlanStep] = []

    def to_json(self) -> Dict[str, Any]:
        """Return the step as a value for JSON."""
        value = {'step': self.kind, **self.details}
        if self.steps or self.kind in ('timer', 'on_event'):
            value['steps'] = [step.to_json() for step in self.steps]
        return value

    def lines(self, indent: str) -> Iterator[str]:
        """Yield the step and those below it as text."""
        yield indent + self.line
        if 'command' in self.details:
            yield f'{indent}  {shlex.join(self.details["command"])}'
        for line in self.details.get('components', ()):
            yield f'{indent}  {line["plugin"]} as {line["namespace"].rstrip("/")}/{line["name"]}'
        for step in self.steps:
            yield from step.lines(indent + '  ')


def plan_of(context: Any) -> Optional[Plan]:
    """Return the plan of a context; ``None`` for one that is not a LaunchContext."""
    return getattr(context, 'plan', None)


class PlanLimitError(RuntimeError):
    """The launch has more steps than a plan takes."""


class Plan:
    """The steps of a launch, what it lacks, and what is not known before it runs."""

    def __init__(self) -> None:
        self.steps: List[PlanStep] = []
        self.files: List[str] = []
        self.missing: List[str] = []
        self.unknown: List[str] = []
        self.warnings: List[str] = []
        self.__place = self.steps
        self.__event: Optional[str] = None
        self.__count = 0
        self.__missing_paths: Set[str] = set()
        self.__later: Deque[Tuple[PlanStep, Any, Dict[str, Any]]] = collections.deque()

    def add(
        self, kind: str, line: str, below: Optional[PlanStep] = None, **details: Any,
    ) -> PlanStep:
        """
        Add a step, below another one or where the plan is.

        :raises PlanLimitError: if there are too many.
        """
        self.__count += 1
        if self.__count > STEPS_MAX:
            raise PlanLimitError(
                f'the plan has more than {STEPS_MAX} steps; does the launch repeat itself?')
        step = PlanStep(kind, line, details)
        (self.__place if below is None else below.steps).append(step)
        return step

    def add_file(self, path: str) -> None:
        """Add a launch file that was read."""
        if path not in self.files:
            self.files.append(path)

    def add_missing(self, reason: str, path: Optional[str] = None) -> None:
        """
        Add something that the launch needs and that is not there.

        :param path: Its path. A path is reported once.
        """
        if reason not in self.missing and (path is None or path not in self.__missing_paths):
            self.missing.append(reason)
        if path is not None:
            self.__missing_paths.add(path)

    def add_unknown(self, reason: str) -> None:
        """Add something that is not known before the launch runs."""
        if self.__event is not None:
            reason = f'{self.__event}: {reason}'
        if reason not in self.unknown:
            self.unknown.append(reason)

    def add_warning(self, text: str) -> None:
        """Add something that is probably a mistake."""
        self.warnings.append(text)

    def add_later(
        self,
        step: PlanStep,
        entities: Iterable[LaunchDescriptionEntity],
        context_locals: Optional[Dict[str, Any]] = None,
    ) -> None:
        """Evaluate entities below a step, after all that the launch begins with."""
        self.__later.append((step, entities, context_locals or {}))

    def run_command(self, line: str, on_stderr: str, context: LaunchContext) -> str:
        """Return the output of a command; nothing if it cannot run."""
        from launch.substitutions.command import run_command
        from launch.substitutions.substitution_failure import SubstitutionFailure
        try:
            return run_command(line, on_stderr, context)
        except SubstitutionFailure as error:
            self.add_missing(str(error))
            return ''

    def finish(self, context: LaunchContext) -> None:
        """Evaluate what follows from events."""
        from launch.utilities import visit_all_entities_and_collect_futures
        while self.__later:
            step, entities, context_locals = self.__later.popleft()
            with self.__below(step):
                context._push_locals()
                context.extend_locals(context_locals)
                try:
                    for entity in entities:
                        visit_all_entities_and_collect_futures(entity, context)
                except PlanLimitError:
                    raise
                except Exception as error:
                    self.add_unknown(f'{type(error).__name__}: {error}')
                finally:
                    context._pop_locals()

    @contextlib.contextmanager
    def __below(self, step: PlanStep) -> Iterator[None]:
        self.__place, self.__event = step.steps, step.line
        try:
            yield
        finally:
            self.__place, self.__event = self.steps, None

    def processes(self) -> List[PlanStep]:
        """Return the steps that start processes, those after events too."""
        found: List[PlanStep] = []
        remaining = list(self.steps)
        while remaining:
            step = remaining.pop(0)
            if step.kind == 'start':
                found.append(step)
            remaining = [*step.steps, *remaining]
        return found

    def to_json(self) -> Dict[str, Any]:
        """Return the plan as a value for JSON."""
        return {
            'files': self.files,
            'steps': [step.to_json() for step in self.steps],
            'missing': self.missing,
            'unknown': self.unknown,
            'warnings': self.warnings,
        }

    def lines(self, indent: str = '') -> Iterator[str]:
        """Yield the steps as text."""
        for step in self.steps:
            yield from step.lines(indent)
