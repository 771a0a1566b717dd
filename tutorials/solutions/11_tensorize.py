"""Solution of tutorial 11: an instruction for the longest paths."""

from tecomp import te

T = 4


def answer():
    a, b = (te.placeholder((T, T), name=name) for name in "ab")
    r = te.reduce_axis((0, T), name="r")
    c = te.compute((T, T), lambda i, j: te.max(a[i, r] + b[r, j], axis=r), name="c")

    def each(statement):
        return te.for_range(0, T, lambda i: te.for_range(0, T, lambda j: statement(i, j)))

    def run(ins, outs):
        (a, b), (c,) = ins, outs
        reset = each(lambda i, j: c.store((i, j), te.min_value("float32")))
        update = each(
            lambda i, j: te.for_range(
                0, T, lambda r: c.store((i, j), te.max(c[i, j], a[i, r] + b[r, j]))
            )
        )
        return te.stmt_seq(reset, update), reset, update

    return te.decl_tensor_intrin(c.op, run, name="longest")
