"""Layouts for people: as text, as a picture."""
