"""Calls of compiled code from Python: arguments, their checks, the process and its threads."""
