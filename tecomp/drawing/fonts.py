"""How wide words are, by the widths of DejaVu, the widest of the fonts that are asked for."""

from __future__ import annotations

# Hundredths of the size, rounded up, for the characters from the space on.
_SANS = (
    32, 41, 46, 84, 64, 96, 78, 28, 40, 40, 50, 84, 32, 37, 32, 34, 64, 64, 64, 64, 64, 64, 64, 64,
    64, 64, 34, 34, 84, 84, 84, 54, 100, 69, 69, 70, 78, 64, 58, 78, 76, 30, 30, 66, 56, 87, 75, 79,
    61, 79, 70, 64, 62, 74, 69, 99, 69, 62, 69, 40, 34, 40, 84, 50, 50, 62, 64, 55, 64, 62, 36, 64,
    64, 28, 28, 58, 28, 98, 64, 62, 64, 64, 42, 53, 40, 64, 60, 82, 60, 60, 53, 64, 34, 64, 84,
)
_BOLD = (
    35, 46, 53, 84, 70, 101, 88, 31, 46, 46, 53, 84, 38, 42, 38, 37, 70, 70, 70, 70, 70, 70, 70, 70,
    70, 70, 40, 40, 84, 84, 84, 59, 100, 78, 77, 74, 84, 69, 69, 83, 84, 38, 38, 78, 64, 100, 84,
    86, 74, 86, 78, 73, 69, 82, 78, 111, 78, 73, 73, 46, 37, 46, 84, 50, 50, 68, 72, 60, 72, 68, 44,
    72, 72, 35, 35, 67, 35, 105, 72, 69, 72, 72, 50, 60, 48, 72, 66, 93, 65, 66, 59, 72, 37, 72, 84,
)
_MONO = 61
_OTHER = 105
"""Of any other character: those of most scripts are no wider than the size."""
ASCENT, DESCENT = 0.8, 0.24
"""How far letters reach above and below their baseline, for a size of 1."""


def text_width(words: str, size: float, style: str = "") -> float:
    """At most how wide words are, in pixels.

    Args:
        words: one line.
        size: of the font, in pixels.
        style: classes such as `mono` and `bold`.

    >>> text_width("ii", 10), text_width("ii", 10, "mono"), text_width("WW", 10, "bold")
    (5.6, 12.2, 22.2)
    """
    if "mono" in style and words.isascii():
        return len(words) * _MONO * size / 100
    table = _BOLD if "bold" in style else _SANS
    is_mono = "mono" in style
    total = 0
    for letter in words:
        place = ord(letter) - 32
        if not 0 <= place < len(table):
            total += _OTHER
        else:
            total += _MONO if is_mono else table[place]
    return total * size / 100


def with_tail(name: str, tail: str, width: float, size: float, style: str = "") -> str:
    """A name and what is said of it, the name cut where there is no room for both.

    >>> with_tail("convolution", ": 8 B", 70, 10), with_tail("ReLU", ": 8 B", 70, 10)
    ('convol…: 8 B', 'ReLU: 8 B')
    """
    return fitted(name, max(width - text_width(tail, size, style), 0.0), size, style) + tail


def fitted(words: str, width: float, size: float, style: str = "") -> str:
    """The words, cut and ended by `…` where they are wider than `width`; nothing fits in nothing.

    >>> fitted("convolution", 40, 10), fitted("ReLU", 40, 10), fitted("ReLU", 5, 10)
    ('conv…', 'ReLU', '')
    """
    if text_width(words, size, style) <= width:
        return words
    left = width - text_width("…", size, style)
    low, high = 0, min(len(words), 1 + int(max(left, 0.0) * 100 / size / 28))
    while low < high:
        middle = (low + high + 1) // 2
        if text_width(words[:middle], size, style) <= left:
            low = middle
        else:
            high = middle - 1
    return f"{words[:low]}…" if low else ""
