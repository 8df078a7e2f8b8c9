"""Event: something that happened, for event handlers."""


class Event:
    """Base of all events."""

    name = 'launch.Event'
