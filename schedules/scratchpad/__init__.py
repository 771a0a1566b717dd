"""Schedules for machines with scratchpads: places, blocks, cores."""
