"""Compilation of pending operations: size-polymorphic kernels, and programs for fixed shapes."""
