"""Solution of tutorial 8: five vectors of four filters, without padding."""


def answer():
    return 4
