"""Operators with schedules for processors, each a definition and a schedule that fits any size.

A module has `define`, which takes tensors and gives the result, and `schedule`, which takes the
result and a target. They use the public interface alone, and are meant to be read. `auto` makes a
schedule for any program out of them.
"""

from __future__ import annotations

if __name__ != "tecomp.schedules":
    raise ImportError("import tecomp.schedules, not schedules (run `pip install -e .` first)")

from tecomp.schedules.auto import auto

__all__ = ["auto"]
