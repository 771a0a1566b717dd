"""Tables of element types and element-wise functions, which all layers read.

Every row is plain data. A package of a higher layer derives its part from the rows: type rules,
functions with docstrings, intrinsics, costs. The package imports no other package of tecomp.
"""
