"""Interoperability: memory of other libraries, device transfers, text."""
