"""Solution of tutorial 8: five vectors of four filters, and nothing is wasted."""


def answer():
    return 4
