"""Tensor expressions: tensors, operations, reductions and expressions of indices."""
