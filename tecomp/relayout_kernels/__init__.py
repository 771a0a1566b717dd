"""Copies from one layout to another: stages of boxes, with schedules of the library."""
