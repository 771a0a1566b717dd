"""Stages of a schedule before loop construction: definitions, reads and footprints."""
