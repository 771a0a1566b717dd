"""Solution of tutorial 3: eight rows of the product at a time."""


def answer(s, P, S):
    outer, _ = s[S].split(S.op.axis[0], factor=8)
    s[P].compute_at(s[S], outer)
