"""Action: start a process from a command."""

from __future__ import annotations

from typing import List

from launch.actions.execute_local import ExecuteLocal
from launch.actions.shutdown_action import Shutdown
from launch.descriptions import Executable
from launch.frontend import Entity
from launch.frontend.expose import expose_action
from launch.substitutions import TextSubstitution

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Dict, Iterable, Optional, Text, Tuple, Type

    from launch.frontend import Parser
    from launch.some_substitutions_type import SomeSubstitutionsType
    from launch.substitution import Substitution

    Variables = Dict[SomeSubstitutionsType, SomeSubstitutionsType]


def _split_command_line(parts: List[Substitution]) -> List[List[Substitution]]:
    """Split a command line as a shell does; substitutions stay whole."""
    from pteros import _native
    line = [part.text if isinstance(part, TextSubstitution) else None for part in parts]
    return [
        [TextSubstitution(text=each) if isinstance(each, str) else parts[each] for each in word]
        for word in _native.split_words(line)]


class _Attributes:
    """The attributes of an element, as arguments of the action."""

    def __init__(
        self, entity: Entity, parser: Parser, ignored: List[str], kwargs: Dict[str, Any],
    ) -> None:
        self.entity = entity
        self.parser = parser
        self.ignored = ignored
        self.kwargs = kwargs

    def add(
        self,
        name: str,
        convert: Callable[[Any], Any],
        data_type: Any = str,
        attribute: Optional[str] = None,
    ) -> None:
        if name in self.ignored:
            return
        value = self.entity.get_attr(attribute or name, data_type=data_type, optional=True)
        if value is not None:
            self.kwargs[name] = convert(value)

    def duration(self, name: str, result: Callable[[float], Any]) -> None:
        def convert(seconds: float) -> Any:
            if isinstance(seconds, (int, float)) and seconds < 0.0:
                raise ValueError(
                    f'Attribute {name} of Entity node expected to be a non-negative value but '
                    f'got `{seconds}`')
            return result(seconds)

        self.add(name, convert, data_type=float)

    def environment(self, entities: List[Entity]) -> Dict[Any, Any]:
        variables = {
            tuple(self.parser.parse_substitution(each.get_attr('name'))):
                self.parser.parse_substitution(each.get_attr('value'))
            for each in entities}
        for each in entities:
            each.assert_entity_completely_parsed()
        return variables


def _on_exit(text: str) -> List[Shutdown]:
    if text != 'shutdown':
        raise ValueError(
            f'Attribute on_exit of Entity node expected to be shutdown but got `{text}`; '
            'other on_exit actions are not supported in launch files of this format')
    return [Shutdown()]


@expose_action('executable')
class ExecuteProcess(ExecuteLocal):
    """Starts a process from a command: see :class:`ExecuteLocal` and :class:`Executable`."""

    def __init__(
        self,
        *,
        cmd: Iterable[SomeSubstitutionsType],
        prefix: Optional[SomeSubstitutionsType] = None,
        name: Optional[SomeSubstitutionsType] = None,
        cwd: Optional[SomeSubstitutionsType] = None,
        env: Optional[Variables] = None,
        additional_env: Optional[Variables] = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            process_description=Executable(
                cmd=cmd, prefix=prefix, name=name, cwd=cwd, env=env,
                additional_env=additional_env),
            **kwargs)

    @classmethod
    def _parse_cmdline(cls, cmd: Text, parser: Parser) -> List[List[Substitution]]:
        """Return the words of a command line."""
        return _split_command_line(parser.parse_substitution(cmd))

    @classmethod
    def parse(
        cls, entity: Entity, parser: Parser, ignore: Optional[List[str]] = None,
    ) -> Tuple[Type[ExecuteProcess], Dict[str, Any]]:
        """Return the class and its arguments, without those of ``ignore``."""
        _, kwargs = super().parse(entity, parser)
        attributes = _Attributes(entity, parser, ignore or [], kwargs)
        if 'cmd' not in attributes.ignored:
            kwargs['cmd'] = cls._parse_cmdline(entity.get_attr('cmd'), parser)
        attributes.add('cwd', parser.parse_substitution)
        attributes.add('name', parser.parse_substitution)
        attributes.add('on_exit', _on_exit)
        attributes.add('prefix', parser.parse_substitution, attribute='launch-prefix')
        attributes.add('output', parser.parse_substitution)
        attributes.add('respawn', parser.parse_substitution)
        attributes.add('respawn_max_retries', lambda value: value, data_type=int)
        attributes.duration('respawn_delay', lambda seconds: seconds)
        attributes.duration('sigkill_timeout', str)
        attributes.duration('sigterm_timeout', str)
        attributes.add('shell', lambda value: value, data_type=bool)
        attributes.add('emulate_tty', lambda value: value, data_type=bool)
        attributes.add(
            'additional_env', attributes.environment, data_type=List[Entity], attribute='env')
        return cls, kwargs

    @property
    def name(self) -> Any:
        """The process's name once prepared, else its beginning."""
        description = self.process_description
        return description.name if description.final_name is None else description.final_name

    @property
    def cmd(self) -> Any:
        """The command once prepared, else its substitutions."""
        description = self.process_description
        return description.cmd if description.final_cmd is None else description.final_cmd

    @property
    def cwd(self) -> Any:
        """The working folder once prepared, else its substitutions."""
        description = self.process_description
        return description.cwd if description.final_cwd is None else description.final_cwd

    @property
    def env(self) -> Any:
        """The environment once prepared, else its substitutions."""
        description = self.process_description
        return description.env if description.final_env is None else description.final_env

    @property
    def additional_env(self) -> Any:
        """The variables to add."""
        return self.process_description.additional_env
