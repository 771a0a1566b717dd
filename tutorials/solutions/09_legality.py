"""Solution of tutorial 9: copy rows from the cores that computed them."""

from tecomp import te


def answer(s, P, C):
    s[P].set_scope("lx")
    near = s.cache_read(P, "lx", [C])
    for tensor in (P, C):
        outer, _ = s[tensor].split(tensor.op.axis[0], nparts=7)
        s[tensor].bind(outer, te.thread_axis("core.x"))
    s[near].compute_at(s[C], outer)
