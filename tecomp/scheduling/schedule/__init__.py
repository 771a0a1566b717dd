"""User-facing schedule objects: they call the primitives and record each call in a trace."""

from tecomp.scheduling.schedule.primitive_calls import Handle
from tecomp.scheduling.schedule.schedule import Schedule, create_schedule
from tecomp.scheduling.schedule.stage import Group, Stage

__all__ = ["Group", "Handle", "Schedule", "Stage", "create_schedule"]
