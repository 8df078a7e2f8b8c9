"""The interface of buffers, and the conversions of data types."""

from __future__ import annotations

from copy import deepcopy

from rclpy.duration import Duration

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Optional

    from rclpy.time import Time


class TypeException(Exception):
    """A type has no registered function."""

    def __init__(self, errstr: str) -> None:
        self.errstr = errstr
        super().__init__(errstr)


class NotImplementedException(Exception):
    """A buffer does not offer a function."""

    def __init__(self) -> None:
        super().__init__(
            'CanTransform or LookupTransform not implemented by this buffer')


class BufferInterface:
    """Base of buffers: transforms data by the transforms that a subclass looks up."""

    def __init__(self) -> None:
        self.registration = TransformRegistration()

    def transform(
        self, object_stamped: Any, target_frame: str, timeout: Duration = Duration(),
        new_type: Any = None,
    ) -> Any:
        """
        Return data in another frame.

        :param object_stamped: Data with a header, of a registered type.
        :param timeout: Longest wait for the transform.
        :param new_type: The type of the result; ``None`` stands for the same.
        :raises TypeException: if a type is not registered.
        """
        do_transform = self.registration.get(type(object_stamped))
        transform = self.lookup_transform(
            target_frame, object_stamped.header.frame_id, _time(object_stamped.header.stamp),
            timeout)
        result = do_transform(object_stamped, transform)
        return result if new_type is None else convert(result, new_type)

    def transform_full(
        self, object_stamped: Any, target_frame: str, target_time: Time, fixed_frame: str,
        timeout: Duration = Duration(), new_type: Any = None,
    ) -> Any:
        """
        Return data in another frame at another time.

        :param fixed_frame: A frame that does not move between the times.
        """
        do_transform = self.registration.get(type(object_stamped))
        transform = self.lookup_transform_full(
            target_frame, target_time, object_stamped.header.frame_id,
            _time(object_stamped.header.stamp), fixed_frame, timeout)
        result = do_transform(object_stamped, transform)
        return result if new_type is None else convert(result, new_type)

    def lookup_transform(
        self, target_frame: str, source_frame: str, time: Time, timeout: Duration = Duration(),
    ) -> Any:
        """Return the transform from a source frame to a target frame."""
        raise NotImplementedException()

    def lookup_transform_full(
        self, target_frame: str, target_time: Time, source_frame: str, source_time: Time,
        fixed_frame: str, timeout: Duration = Duration(),
    ) -> Any:
        """Return the transform between frames at two times."""
        raise NotImplementedException()

    def can_transform(
        self, target_frame: str, source_frame: str, time: Time, timeout: Duration = Duration(),
    ) -> bool:
        """Return whether a look-up would succeed."""
        raise NotImplementedException()

    def can_transform_full(
        self, target_frame: str, target_time: Time, source_frame: str, source_time: Time,
        fixed_frame: str, timeout: Duration = Duration(),
    ) -> bool:
        """Return whether a look-up between two times would succeed."""
        raise NotImplementedException()


def _time(stamp: Any) -> Time:
    if hasattr(stamp, 'nanoseconds'):
        return stamp
    from rclpy.time import Time
    return Time.from_msg(stamp)


def Stamped(obj: Any, stamp: Any, frame_id: str) -> Any:
    """Give an object a header with a time and a frame id, and return it."""
    from std_msgs.msg import Header
    obj.header = Header(frame_id=frame_id, stamp=stamp)
    return obj


class TransformRegistration:
    """The functions that apply a transform, by the type of the data."""

    __type_map: dict = {}

    def print_me(self) -> None:
        """Print the registered types."""
        print(TransformRegistration.__type_map)

    def add(self, key: Any, callback: Callable[[Any, Any], Any]) -> None:
        """Register the function of a type: it gets the data and the transform."""
        TransformRegistration.__type_map[key] = callback

    def get(self, key: Any) -> Callable[[Any, Any], Any]:
        """
        Return the function of a type.

        :raises TypeException: if there is none.
        """
        try:
            return TransformRegistration.__type_map[key]
        except KeyError:
            raise TypeException(
                f'Type {key} is not loaded or supported; import a package that registers it, '
                'such as tf2_geometry_msgs') from None


class ConvertRegistration:
    """The functions that convert data to and from messages, by type."""

    __to_msg_map: dict = {}
    __from_msg_map: dict = {}
    __convert_map: dict = {}

    def add_from_msg(self, key: Any, callback: Callable[[Any], Any]) -> None:
        """Register the function that makes a type from its message."""
        ConvertRegistration.__from_msg_map[key] = callback

    def add_to_msg(self, key: Any, callback: Callable[[Any], Any]) -> None:
        """Register the function that makes the message of a type."""
        ConvertRegistration.__to_msg_map[key] = callback

    def add_convert(self, key: Any, callback: Callable[[Any], Any]) -> None:
        """Register the function of a pair of types."""
        ConvertRegistration.__convert_map[key] = callback

    def get_from_msg(self, key: Any) -> Callable[[Any], Any]:
        """Return a function of :meth:`add_from_msg`; ``TypeException`` if there is none."""
        return _registered(ConvertRegistration.__from_msg_map, key)

    def get_to_msg(self, key: Any) -> Callable[[Any], Any]:
        """Return a function of :meth:`add_to_msg`; ``TypeException`` if there is none."""
        return _registered(ConvertRegistration.__to_msg_map, key)

    def get_convert(self, key: Any) -> Callable[[Any], Any]:
        """Return a function of :meth:`add_convert`; ``TypeException`` if there is none."""
        return _registered(ConvertRegistration.__convert_map, key)


def _registered(functions: dict, key: Any) -> Callable[[Any], Any]:
    try:
        return functions[key]
    except KeyError:
        raise TypeException(f'Type {key} is not loaded or supported') from None


def convert(a: Any, b_type: Any) -> Any:
    """
    Return data as another type.

    :raises TypeException: if no conversion is registered.
    """
    registration = ConvertRegistration()
    try:
        return registration.get_convert((type(a), b_type))(a)
    except TypeException:
        if type(a) is b_type:
            return deepcopy(a)
        return registration.get_from_msg(b_type)(registration.get_to_msg(type(a))(a))
