"""Colours of pictures: hues that the colour-blind tell apart, each from light to dark."""

from __future__ import annotations

HUES = (
    ("#aad2ef", "#7ab6e4", "#4a9ad9", "#3a8bcf"),
    ("#f9d29d", "#f5bb6a", "#f1a136", "#dc8813"),
    ("#b0e9d5", "#83ddbd", "#57d0a5", "#37b588"),
    ("#e1b5d5", "#d28cbb", "#c872a9", "#bf62a0"),
    ("#f3e7a0", "#ebd968", "#e0c83c", "#c9ae1e"),
    ("#cdc4ef", "#b3a6e6", "#9c8cdd", "#8c7ad6"),
    ("#f6bfae", "#ee9a81", "#e57f62", "#d9694a"),
    ("#a8e3ea", "#74d0db", "#43bccb", "#279fae"),
)
"""Of parts that are told apart; words on any of them are dark."""

NEUTRAL = "#dfe3e8"
STRONG = "#dc8813"
"""What a picture is about, such as a relayout."""


def colour(hue: int, shade: int = 0) -> str:
    """A colour; hues repeat after the last, shades end with the darkest.

    >>> colour(0), colour(8), colour(0, 9)
    ('#aad2ef', '#aad2ef', '#3a8bcf')
    """
    shades = HUES[hue % len(HUES)]
    return shades[min(shade, len(shades) - 1)]
