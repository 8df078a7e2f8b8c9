"""Reads definition files of interfaces: `rosidl_adapter.parser`."""
