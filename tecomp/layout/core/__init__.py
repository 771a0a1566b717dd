"""The `Layout` class: an index map on a tensor of known shape, with its derived properties."""
