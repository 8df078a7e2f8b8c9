"""Converts definitions of actions to IDL."""

from rosidl_adapter.idl import convert as convert_action_to_idl

__all__ = ['convert_action_to_idl']
