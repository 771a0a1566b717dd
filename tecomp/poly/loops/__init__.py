"""Conversion of sets to loops: regions at a program point, bounding boxes, scanning loops."""
