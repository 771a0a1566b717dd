"""Solution of tutorial 13: an order about cores."""

import tecomp


def answer(Y):
    rows, columns = (axis.var.name for axis in Y.op.axis)
    return [tecomp.hint(Y, cores={rows: 4, columns: 4}, hard=True)]
