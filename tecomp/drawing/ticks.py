"""Numbers below an axis, in few letters."""

from __future__ import annotations

from math import floor, log10

from tecomp.drawing.canvas import Canvas


def ticks(
    canvas: Canvas, left: float, right: float, y: float, end: float, unit: str
) -> None:
    """Draw numbers from 0 to at most `end` below an axis.

    Args:
        canvas: the picture.
        left: where 0 is.
        right: where `end` is, above 0.
        y: of the axis.
        end: the largest number.
        unit: written behind the numbers.
    """
    step = 10.0 ** floor(log10(end))
    step = next(step * part for part in (0.1, 0.2, 0.5, 1.0, 2.0) if end / (step * part) <= 6.5)
    for n in range(floor(end / step) + 1):
        x = left + n * step * (right - left) / end
        canvas.line([(x, y), (x, y + 4)])
        canvas.text(x, y + 16, short(n * step), size=9, style="mono soft", anchor="middle")
    canvas.text(right + 36, y + 16, unit, size=9, style="mono soft")


def short(value: float) -> str:
    """A number in few letters.

    >>> short(0.0), short(2500.0), short(3e9), short(0.5)
    ('0', '2.5k', '3G', '0.5')
    """
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g}{letter}" if value < 1e15 else f"{value:.1e}"
    return f"{value:.3g}"


def in_bytes(value: float) -> str:
    """Bytes in few letters, by powers of a thousand as rates are.

    >>> in_bytes(42.0), in_bytes(2.2e11)
    ('42 B', '220 GB')
    """
    text = short(value)
    return f"{text[:-1]} {text[-1]}B" if text[-1].isalpha() else f"{text} B"
