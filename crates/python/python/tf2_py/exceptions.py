"""Exceptions of transform look-ups."""


class TransformException(Exception):
    """Base of the exceptions of transform look-ups."""


class ConnectivityException(TransformException):
    """Two frames are in different trees."""


class LookupException(TransformException):
    """A frame does not exist."""


class ExtrapolationException(TransformException):
    """The buffer has no transform at that time."""


class InvalidArgumentException(TransformException):
    """An argument is malformed, such as a frame id with a leading slash."""


class TimeoutException(TransformException):
    """A transform did not come in time."""
