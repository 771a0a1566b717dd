"""Bar chart of ratios as deterministic SVG."""

from __future__ import annotations

from collections.abc import Sequence
from math import log2
from xml.sax.saxutils import escape

from tests.bench.record import Row, peers_of

_LABELS, _WIDTH, _BAR, _GAP = 230, 900, 9, 10
_OCTAVES = (-2, 4)
"""Powers of two at the ends of the axis: from a quarter to sixteen."""
_COLOURS = ("#4477aa", "#ee6677", "#aa3377", "#228833", "#ccbb44", "#66ccee", "#777777")
_STYLE = """\
  <style>
    @media (prefers-color-scheme: dark) {
      .page { fill: #0d1117 } .ink { fill: #e6edf3 } .soft { fill: #9aa7b4 }
      .rule { stroke: #30363d } .one { stroke: #e6edf3 }
    }
  </style>"""


def chart(rows: Sequence[Row]) -> str:
    """Return the chart; bars to the right of the line at 1 are rows where tecomp is faster."""
    names = peers_of(rows)
    shown = [(row, bars) for row in rows if (bars := _bars(row, names))]
    body, top = [], 56
    for row, bars in shown:
        middle = top + len(bars) * _BAR / 2 + 4
        body.append(
            f'  <text class="ink" x="{_LABELS - 12}" y="{middle:g}" text-anchor="end" '
            f'font-size="12" fill="#1f2328">{escape(row.case)}</text>'
        )
        for k, (name, value) in enumerate(bars):
            body.append(_bar(value, top + k * _BAR, _COLOURS[names.index(name) % len(_COLOURS)]))
        top += len(bars) * _BAR + _GAP
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {top + 8}" '
        f'width="{_WIDTH}" height="{top + 8}" role="img" '
        'aria-label="How many times as fast as each peer tecomp is" '
        'font-family="ui-sans-serif, system-ui, Helvetica, Arial, sans-serif">',
        "  <title>How many times as fast as each peer tecomp is</title>",
        _STYLE,
        f'  <rect class="page" width="{_WIDTH}" height="{top + 8}" rx="8" fill="#ffffff"/>',
        *_legend(names),
        *_axis(top),
    ]
    return "\n".join([*head, *body, "</svg>", ""])


def _bars(row: Row, names: Sequence[str]) -> list[tuple[str, float]]:
    found = [(name, row.against(name)) for name in names]
    return [(name, value) for name, value in found if value is not None]


def _place(value: float) -> float:
    """Return the position of a ratio on the axis, clamped to the ends of the axis."""
    low, high = _OCTAVES
    share = (min(max(log2(value), low), high) - low) / (high - low)
    return round(_LABELS + share * (_WIDTH - _LABELS - 70), 1)


def _bar(value: float, top: float, colour: str) -> str:
    left, right = sorted((_place(1.0), _place(value)))
    return (
        f'  <rect x="{left:g}" y="{top:g}" width="{right - left:.1f}" height="{_BAR - 2}" '
        f'fill="{colour}"/>\n'
        f'  <text class="soft" x="{right + 4:g}" y="{top + _BAR - 2:g}" font-size="8" '
        f'fill="#57606a">{value:.2f}</text>'
    )


def _legend(names: Sequence[str]) -> list[str]:
    lines = []
    for k, name in enumerate(names):
        left = 20 + 120 * k
        colour = _COLOURS[k % len(_COLOURS)]
        lines.append(f'  <rect x="{left}" y="12" width="10" height="10" fill="{colour}"/>')
        lines.append(
            f'  <text class="ink" x="{left + 15}" y="21" font-size="12" '
            f'fill="#1f2328">{escape(name)}</text>'
        )
    return lines


def _axis(bottom: float) -> list[str]:
    lines = []
    for octave in range(_OCTAVES[0], _OCTAVES[1] + 1):
        x, is_one = _place(2.0**octave), octave == 0
        kind, colour = ("one", "#1f2328") if is_one else ("rule", "#d0d7de")
        lines.append(
            f'  <path class="{kind}" d="M{x:g} 48V{bottom:g}" stroke="{colour}" '
            f'stroke-width="{1.5 if is_one else 1}"/>'
        )
        lines.append(
            f'  <text class="soft" x="{x:g}" y="42" font-size="11" text-anchor="middle" '
            f'fill="#57606a">{2.0**octave:g}x</text>'
        )
    return lines
