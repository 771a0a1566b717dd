"""Emission of LLVM modules from IR functions: expressions, statements and parallel loops."""
