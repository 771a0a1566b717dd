"""Drawing primitives: SVG output, a canvas, colours, text metrics, legends and HTML pages."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tecomp.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tecomp.drawing.canvas import (
        ASCENT,
        DESCENT,
        HUES,
        MARGIN,
        Canvas,
        colour,
        head,
        in_bytes,
        lanes_of,
        legend,
        text_width,
        truncate_to_width,
    )
    from tecomp.drawing.chrome_trace import (
        ChromeTrace,
        bar,
        lane_named,
        level,
        process_named,
        trace_of,
    )
    from tecomp.drawing.drawable import Pictured
    from tecomp.drawing.svg import HtmlPage, Svg
else:
    __getattr__, __dir__ = lazy_names(__name__)
