"""Functions of the IR to modules of LLVM: expressions, statements, parallel loops."""
