"""Operand constraints of targets, checked for operations and schedules; layout hints."""
