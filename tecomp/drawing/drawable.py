"""The `Drawable` mixin: objects that know their drawing function by name."""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    # Imported lazily by `call_drawing_function` with the first figure.
    from tecomp.drawing.svg import Svg


def call_drawing_function(where: str, *arguments: Any) -> Any:
    """Call the drawing function `module:function` of `tecomp.viz` with the given arguments."""
    module, _, name = where.partition(":")
    return getattr(import_module(f"tecomp.viz.{module}"), name)(*arguments)


class Drawable:
    """An object that can be drawn.

    `tecomp.viz` depends on all packages that it draws, so it is imported with the first figure.
    """

    __slots__ = ()

    _drawn_by: ClassVar[str]
    """Name of the drawing function in `tecomp.viz`, as `module:function`."""

    def picture(self) -> Svg:
        """Return the object as an SVG figure; notebooks display it.

        Returns:
            SVG text; `.save("x.svg")` and `.save("x.html")` write it to a file.

        >>> import tecomp
        >>> tecomp.Layout.row_major((4, 8), "int8").picture().startswith("<svg")
        True
        """
        svg: Svg = call_drawing_function(self._drawn_by, self)
        return svg

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the figure to `x.svg`, or a page with the figure to `x.html`.

        Args:
            path: Path of the file; an existing file is replaced.

        Raises:
            CallError: If the path has another suffix or cannot be written.

        >>> import tempfile
        >>> from pathlib import Path
        >>> import tecomp
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     tecomp.Layout.row_major((4, 8), "int8").save(f"{folder}/rows.svg")
        ...     print([path.name for path in Path(folder).iterdir()])
        ['rows.svg']
        """
        self.picture().save(path)


class Pictured(Drawable):
    """A `Drawable` that notebooks display as its figure."""

    __slots__ = ()

    def _repr_svg_(self) -> str:
        return str(self.picture())

    def _repr_html_(self) -> str:
        return self.picture()._repr_html_()
