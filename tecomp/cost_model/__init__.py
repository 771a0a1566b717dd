"""Static cost model: traffic, work and cycles of a program on a target, without execution."""
