"""Parts that pictures have in common: a head, headings of panels, a legend."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tecomp.drawing.canvas import MARGIN, Canvas
from tecomp.drawing.fonts import text_width

WIDEST = 1100.0
"""How far lines of words reach before they go on below."""


def head(canvas: Canvas, title: str, *lines: str) -> float:
    """The title of a picture with lines below it; where they end."""
    canvas.text(MARGIN, 30, title, size=18, style="bold", width=WIDEST)
    y = 34.0
    for line in lines:
        if line:
            y += 18
            canvas.text(MARGIN, y, line, size=12, style="soft", width=WIDEST)
    return y


def heading(canvas: Canvas, x: float, y: float, words: str, remark: str = "") -> float:
    """The heading of a panel, with a remark beside it; where it ends to the right."""
    right = canvas.text(x, y, words, size=13, style="bold")
    return canvas.text(right + 8, y, remark, style="soft") if remark else right


def legend(
    canvas: Canvas, y: float, entries: Iterable[tuple[str, str]], remarks: Sequence[str] = ()
) -> float:
    """What colours mean, as many to a line as fit, and remarks; where it ends.

    Args:
        canvas: the picture.
        y: top.
        entries: a fill, as for `Canvas.box`, and what it means.
        remarks: lines below.
    """
    x = MARGIN
    row = 0
    for fill, words in entries:
        wide = 20 + text_width(words, 11) + 24
        if x > MARGIN and x + wide > WIDEST:
            x, row = MARGIN, row + 1
        canvas.box(x, y + row * 20, 12, 12, fill, words)
        canvas.text(x + 18, y + row * 20 + 10, words, style="soft", width=WIDEST)
        x += wide
    below = y + (row + 1) * 20 if x > MARGIN else y
    for number, remark in enumerate(remarks):
        canvas.text(MARGIN, below + number * 17 + 11, remark, style="soft", width=WIDEST)
    return below + len(remarks) * 17


def many(count: int, word: str) -> str:
    """So many of something, with thousands set apart.

    >>> many(1, "run"), many(262144, "run")
    ('1 run', '262,144 runs')
    """
    return f"{count:,} {word}{'s' * (count != 1)}"


def sampled(count: int, most: int, last: int = 1) -> list[int | None]:
    """Numbers below `count`: all if there are at most `most`, else the first, None, the last.

    >>> sampled(4, 6), sampled(1000, 4)
    ([0, 1, 2, 3], [0, 1, 2, None, 999])
    """
    if count <= most:
        return list(range(count))
    return [*range(most - last), None, *range(count - last, count)]
