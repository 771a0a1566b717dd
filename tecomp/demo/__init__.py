"""The main job from end to end: a bank of image filters, written, scheduled, laid out and run."""

from __future__ import annotations

from tecomp.demo.main import Job, run

__all__ = ["Job", "run"]
