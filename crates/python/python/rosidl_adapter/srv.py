"""Converts definitions of services to IDL."""

from rosidl_adapter.idl import convert as convert_srv_to_idl

__all__ = ['convert_srv_to_idl']
