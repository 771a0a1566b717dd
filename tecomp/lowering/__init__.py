"""Lowering of schedules to flat IR: loop nest construction and lowering passes."""
