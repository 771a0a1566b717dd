"""LLVM's side: text of modules in the making, its passes, machine code and where it is kept."""
