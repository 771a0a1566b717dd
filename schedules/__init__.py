"""Operators with schedules for CPUs and for accelerators with scratchpads.

An operator module has `define`, which builds the output tensor from input tensors, and `schedule`,
which returns a schedule of that output for a target and supports any extents. The modules use the
public interface only and serve as examples. `auto` builds a schedule for any program from the same
parts.
"""

from __future__ import annotations

if __name__ != "tecomp.schedules":
    raise ImportError("import tecomp.schedules, not schedules (run `pip install -e .` first)")

from tecomp.schedules.auto import auto

__all__ = ["auto"]
