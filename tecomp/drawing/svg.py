"""SVG and HTML output."""

from __future__ import annotations

import os
import re
import tempfile
from html import escape as in_html
from pathlib import Path

from tecomp.errors import CallError

_PAGE = """\
<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<style>body{{margin:16px;background:#ffffff}}
@media (prefers-color-scheme:dark){{body{{background:#16191d}}}}</style></head>
<body>
{body}
</body></html>
"""
_TITLE = re.compile("<title>(.*?)</title>", re.DOTALL)


class HtmlPage(str):
    """Text of an HTML page; notebooks display it in a frame.

    >>> import tecomp
    >>> page = tecomp.Layout.row_major((4, 8), "int8").explore()
    >>> type(page).__name__, "<html" in page
    ('HtmlPage', True)
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<Page of {len(self):_} characters>"

    def _repr_html_(self) -> str:
        size = 'width="100%" height="640" style="border:0"'
        return f'<iframe srcdoc="{in_html(self)}" {size}></iframe>'

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file `x.html`.

        Args:
            path: Path of the file; an existing file is replaced.

        Raises:
            CallError: If the path has another suffix or cannot be written.

        >>> import tecomp
        >>> page = tecomp.Layout.row_major((4, 8), "int8").explore()
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     page.save(f"{folder}/layout.html")
        ...     print([path.name for path in Path(folder).iterdir()])
        ['layout.html']
        """
        write_figure({".html": self}, path)


class Svg(str):
    """SVG text of a figure; notebooks display it.

    >>> import tecomp
    >>> picture = tecomp.Layout.row_major((4, 8), "int8").picture()
    >>> type(picture).__name__, picture.startswith("<svg")
    ('Svg', True)
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return f"<Svg of {len(self):_} characters>"

    def _repr_svg_(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """Return the figure inline in HTML, so that tooltips work."""
        return f'<div style="overflow-x:auto">{self}</div>'

    def with_text(self, text: str) -> str:
        """Return the figure as HTML, followed by a collapsed text.

        >>> import tecomp
        >>> picture = tecomp.Layout.row_major((4, 8), "int8").picture()
        >>> "<pre>row by row</pre>" in picture.with_text("row by row")
        True
        """
        details = f"<details><summary>text</summary><pre>{in_html(text)}</pre></details>"
        return self._repr_html_() + details

    def page(self) -> HtmlPage:
        """Return an HTML page that contains only the figure.

        >>> import tecomp
        >>> "<html" in tecomp.Layout.row_major((4, 8), "int8").picture().page()
        True
        """
        found = _TITLE.search(self)
        return HtmlPage(_PAGE.format(title=found.group(1) if found else "picture", body=str(self)))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the figure to `x.svg`, or a page with the figure to `x.html`.

        Args:
            path: Path of the file; an existing file is replaced.

        Raises:
            CallError: If the path has another suffix or cannot be written.

        >>> import tecomp
        >>> picture = tecomp.Layout.row_major((4, 8), "int8").picture()
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     picture.save(f"{folder}/rows.html")
        ...     print([path.name for path in Path(folder).iterdir()])
        ['rows.html']
        """
        write_figure({".svg": self, ".html": self.page()}, path)


def write_figure(kinds: dict[str, str], path: str | os.PathLike[str]) -> None:
    """Write the text that belongs to the suffix of a path, atomically.

    Raises:
        CallError: If no text belongs to the suffix, or the path cannot be written.
    """
    try:
        target = Path(path)
    except TypeError as error:
        raise CallError(
            "save: {path!r} is not a valid path; pass a path such as 'x{suffix}'",
            kind="invalid-type", path=path, suffix=min(kinds),
        ) from error
    text = kinds.get(target.suffix.lower())
    if text is None:
        raise CallError(
            "save: {path!r} does not end in {kinds}, which selects the file format",
            kind="unknown-choice", path=str(path), kinds=" or ".join(kinds),
        )
    try:
        _replace(target, text)
    except (OSError, ValueError) as error:
        # `strerror` omits the name of the temporary file, which is internal to this function.
        reason = getattr(error, "strerror", None) or error
        raise CallError(
            "save: {path!r} cannot be written ({reason}); pass a file in an existing directory",
            kind="invalid-type", path=str(path), reason=reason,
        ) from error


def _replace(target: Path, text: str) -> None:
    handle, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(name, 0o666 & ~mask)
        os.replace(name, target)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
