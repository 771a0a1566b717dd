"""Rules of a machine about operands, decided for operations and schedules."""
