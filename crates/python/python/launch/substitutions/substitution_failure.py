"""Error of a substitution that has no value."""


class SubstitutionFailure(RuntimeError):
    """A substitution that has no value in this context."""
