"""What is compiled for pending operations: kernels for all sizes of a pattern, and programs."""
