"""Kernels that copy tensors between layouts, as scheduled copies of boxes."""
