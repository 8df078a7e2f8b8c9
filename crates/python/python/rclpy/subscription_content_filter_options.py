"""The content filter of a subscription, as later releases of rclpy have it."""

from __future__ import annotations

from typing import List, NamedTuple


class ContentFilterOptions(NamedTuple):
    """A filter on the fields of messages: only matching messages are received."""

    filter_expression: str
    """A condition of DDS, such as ``data > %0``; empty for no filter."""

    expression_parameters: List[str] = []
    """The values of ``%0``, ``%1`` and so on."""
