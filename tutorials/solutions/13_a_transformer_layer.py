"""Solution of tutorial 13: a hard division hint."""

import tecomp


def answer(Y):
    rows, columns = (axis.var.name for axis in Y.op.axis)
    return [tecomp.hint(Y, cores={rows: 4, columns: 4}, hard=True)]
