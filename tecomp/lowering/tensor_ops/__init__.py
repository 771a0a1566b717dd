"""Tensorization: replacement of loops by tensor intrinsics of the target."""
