"""Parallel tensors: operations on whole arrays that have a device and a team."""
