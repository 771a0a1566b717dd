"""Numbers that the namespace has names for."""

import math

e = math.e
"""Euler's number."""

inf = math.inf
"""Positive infinity."""

nan = math.nan
"""What is no number."""

newaxis = None
"""An index that adds an axis of one place."""

pi = math.pi
"""The half of a turn, in radians."""
