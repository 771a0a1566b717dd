"""Lowering of operations on parallel tensors to tensors, device regions and runtime calls."""
