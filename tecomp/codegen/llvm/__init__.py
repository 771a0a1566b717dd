"""LLVM interface: IR builder, pass selection, JIT and code cache."""
