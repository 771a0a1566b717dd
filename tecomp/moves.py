"""Deprecated alias of `tecomp.copy_schedule`, to be removed in version 0.2."""

import sys
import warnings

from tecomp import copy_schedule
from tecomp.copy_schedule import *  # noqa: F403  for type checkers

warnings.warn(
    "tecomp.moves was renamed: import tecomp.copy_schedule", DeprecationWarning, stacklevel=2
)
sys.modules[__name__] = copy_schedule
