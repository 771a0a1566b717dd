"""Solution of tutorial 14: root mean square difference."""


def answer(xp, x, y):
    return xp.sqrt(xp.mean((x - y) * (x - y)))
