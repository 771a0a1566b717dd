"""The `Layout` class: an index map on a tensor of known shape; layouts in sticks."""
