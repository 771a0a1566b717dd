"""Scalar expressions of element-wise functions, for real and complex numbers."""
