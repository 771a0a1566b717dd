"""What the user holds: `s[T].split(...)` on top of the primitives, each call kept in a trace."""

from tecomp.scheduling.schedule.primitive_calls import Handle
from tecomp.scheduling.schedule.schedule import Schedule, create_schedule
from tecomp.scheduling.schedule.stage import Group, Stage

__all__ = ["Group", "Handle", "Schedule", "Stage", "create_schedule"]
