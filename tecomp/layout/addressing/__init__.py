"""Addresses of tensor elements in a layout."""
