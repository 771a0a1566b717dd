"""Runtime library shared by all kernels of a process, as LLVM IR."""
