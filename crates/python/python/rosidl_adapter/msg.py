"""Converts definitions of messages to IDL."""

from rosidl_adapter.idl import convert as convert_msg_to_idl
from rosidl_adapter.idl import (
    get_idl_type, get_include_file, string_to_idl_string_literal, to_idl_literal,
)

__all__ = [
    'convert_msg_to_idl', 'get_idl_type', 'get_include_file', 'string_to_idl_string_literal',
    'to_idl_literal']
