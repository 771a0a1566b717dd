"""Copies between two maps of one tensor: common digits, strided loop nests, contiguous runs."""
