"""Pictures as SVG text, on a canvas that grows with its shapes, so that nothing is cut off."""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape

_SANS = "system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif"
_MONO = "ui-monospace,'SF Mono','DejaVu Sans Mono',Menlo,Consolas,monospace"
_MONO_WIDTH, _SANS_WIDTH, _BOLD_WIDTH = 0.625, 0.66, 0.8
"""Widths of a character for a size of 1, those of the widest of the fonts above."""

_STYLE = f"""\
text{{font-family:{_SANS};fill:#1a1d21}}
text.mono{{font-family:{_MONO}}}
text.soft{{fill:#59626d}}
text.bold{{font-weight:700}}
text.dark{{fill:#10202f}}
.paper{{fill:#ffffff}}
.line{{stroke:#59626d;fill:none}}
.pad{{fill:#dfe3e8}}
.hatch{{stroke:#aab2bd}}
@media (prefers-color-scheme:dark){{
text{{fill:#eef1f4}}
text.soft{{fill:#aab2bd}}
.paper{{fill:#16191d}}
.line{{stroke:#aab2bd}}
.pad{{fill:#353c45}}
.hatch{{stroke:#5b6570}}
}}"""


class Svg(str):
    """The text of a picture, which a notebook shows as the picture."""

    __slots__ = ()

    def _repr_svg_(self) -> str:
        return str(self)


class Canvas:
    """A picture under way: what is on it, and how far it reaches."""

    def __init__(self, margin: float = 24) -> None:
        self._margin = margin
        self._right = 0.0
        self._bottom = 0.0
        self._parts: list[str] = []

    def text(
        self, x: float, y: float, words: str, *, size: float = 11, style: str = "",
        anchor: str = "start",
    ) -> None:
        """Words with their baseline at y; `style` names classes such as `mono soft bold`."""
        width = text_width(words, size, style)
        self._reach(x + {"start": width, "middle": width / 2, "end": 0}[anchor], y + size * 0.3)
        marks = f' class="{style}"' if style else ""
        where = "" if anchor == "start" else f' text-anchor="{anchor}"'
        self._parts.append(
            f'<text x="{_n(x)}" y="{_n(y)}" font-size="{_n(size)}"{marks}{where}>'
            f"{escape(words)}</text>"
        )

    def box(
        self, x: float, y: float, width: float, height: float, fill: str, title: str = ""
    ) -> None:
        """A rectangle of a colour, or of `pad`, which is hatched; a mouse over it shows `title`."""
        self._reach(x + width, y + height)
        paint = f'fill="{fill}"' if fill.startswith("#") else 'class="pad"'
        shape = (
            f'<rect x="{_n(x)}" y="{_n(y)}" width="{_n(width)}" height="{_n(height)}" rx="1.5" '
        )
        inner = f"<title>{escape(title)}</title>" if title else ""
        self._parts.append(f"{shape}{paint}>{inner}</rect>" if inner else f"{shape}{paint}/>")
        if fill == "pad":
            self._parts.append(f'{shape}fill="url(#hatch)"/>')

    def arrow(self, start: tuple[float, float], end: tuple[float, float]) -> None:
        """A straight line with a head at its end."""
        self._reach(max(start[0], end[0]) + 4, max(start[1], end[1]) + 4)
        self._parts.append(
            f'<path d="M{_n(start[0])} {_n(start[1])}L{_n(end[0])} {_n(end[1])}" class="line" '
            'stroke-width="1.3" marker-end="url(#head)"/>'
        )

    def line(self, points: Sequence[tuple[float, float]], colour: str = "") -> None:
        """A line through points, without a head."""
        for x, y in points:
            self._reach(x, y)
        path = "L".join(f"{_n(x)} {_n(y)}" for x, y in points)
        paint = f' style="stroke:{colour}"' if colour else ""
        self._parts.append(f'<path d="M{path}" class="line" stroke-width="1.3"{paint}/>')

    def finished(self, title: str) -> Svg:
        """The picture, with a title for those who do not see it."""
        width, height = _n(self._right + self._margin), _n(self._bottom + self._margin)
        return Svg("\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
                f'viewBox="0 0 {width} {height}" role="img">',
                f"<title>{escape(title)}</title>",
                f"<style>\n{_STYLE}\n</style>",
                '<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" '
                'patternTransform="rotate(45)"><path d="M0 0V6" class="hatch" '
                'stroke-width="1.5"/></pattern>'
                '<marker id="head" viewBox="0 0 8 8" refX="6" refY="4" markerWidth="6" '
                'markerHeight="6" orient="auto-start-reverse"><path d="M0 0L8 4L0 8z" '
                'fill="#59626d"/></marker></defs>',
                f'<rect width="{width}" height="{height}" class="paper"/>',
                *self._parts,
                "</svg>",
            ]
        ))

    def _reach(self, x: float, y: float) -> None:
        self._right, self._bottom = max(self._right, x), max(self._bottom, y)


def text_width(words: str, size: float, style: str = "") -> float:
    """At most how wide words are."""
    each = _MONO_WIDTH if "mono" in style else _BOLD_WIDTH if "bold" in style else _SANS_WIDTH
    return len(words) * size * each


def _n(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
