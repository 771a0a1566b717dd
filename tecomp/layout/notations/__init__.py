"""Layouts as other systems write them: blocked, CuTe, XLA, affine maps of MLIR."""
