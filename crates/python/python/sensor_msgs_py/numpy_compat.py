"""Conversions between structured and unstructured numpy arrays."""

from numpy.lib.recfunctions import structured_to_unstructured, unstructured_to_structured

__all__ = ['structured_to_unstructured', 'unstructured_to_structured']
