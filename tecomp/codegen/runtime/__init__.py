"""What all kernels of a process share while they run, as LLVM IR."""
