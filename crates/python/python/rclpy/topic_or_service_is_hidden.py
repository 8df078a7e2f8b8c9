"""Hidden names."""

HIDDEN_TOPIC_PREFIX = '_'


def topic_or_service_is_hidden(name: str) -> bool:
    """Return whether a part of a topic or service name begins with an underscore."""
    return any(part.startswith(HIDDEN_TOPIC_PREFIX) for part in name.split('/'))
