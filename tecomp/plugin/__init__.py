"""For those who describe machines: a new package with a target, and what a target has to pass."""
