"""The part of rosidl_parser that message classes refer to: `definition`."""
