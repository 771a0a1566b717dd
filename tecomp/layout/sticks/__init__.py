"""Stick layouts: tensors tiled into sticks of a fixed number of bytes."""
