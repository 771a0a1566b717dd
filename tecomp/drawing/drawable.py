"""The `Drawable` mixin: objects that know their drawing function by name."""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    # Loaded with the first picture.
    from tecomp.drawing.svg import Svg


def drawn_by(where: str, *arguments: Any) -> Any:
    """What a function of the room of pictures, `module:function`, makes of its arguments."""
    module, _, name = where.partition(":")
    return getattr(import_module(f"tecomp.viz.{module}"), name)(*arguments)


class Drawable:
    """An object with a picture.

    The room of pictures stands above all that it draws, and is loaded with the first picture.
    """

    __slots__ = ()

    _drawn_by: ClassVar[str]
    """Where the function is that draws it, as `module:function`."""

    def picture(self) -> Svg:
        """The object as SVG, text that a notebook shows as the picture.

        Returns:
            The text; `.save("x.svg")` and `.save("x.html")` write it to a file.

        >>> import tecomp
        >>> tecomp.Layout.row_major((4, 8), "int8").picture().startswith("<svg")
        True
        """
        made: Svg = drawn_by(self._drawn_by, self)
        return made

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the picture to a file `x.svg`, or a page with it to `x.html`.

        Args:
            path: of the file; one that is there is written anew.

        Raises:
            CallError: the path ends otherwise, or nothing can be written there.

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
    """An object that notebooks show as its picture."""

    __slots__ = ()

    def _repr_svg_(self) -> str:
        return str(self.picture())

    def _repr_html_(self) -> str:
        return self.picture()._repr_html_()
