"""Demonstration of the whole pipeline: define, schedule, lay out and run image filters."""

from __future__ import annotations

from tecomp.demo.main import DemoRun, run

__all__ = ["DemoRun", "run"]
