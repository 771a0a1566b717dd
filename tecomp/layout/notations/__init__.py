"""Layout notations of other systems: oneDNN blocked tags, CuTe, XLA and MLIR affine maps."""
