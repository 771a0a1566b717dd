"""Words that a shell offers for the argument of a command."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

import tecomp
from tecomp.pages import pages


def machines(
    context: click.Context, parameter: click.Parameter, begun: str
) -> list[CompletionItem]:
    """The targets whose names begin so; if there are none, files, since a path names one too."""
    found = [CompletionItem(name) for name in tecomp.list_targets() if name.startswith(begun)]
    return found or [CompletionItem(begun, type="file")]


def codes(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """The codes of errors that begin so, with what each says, and the kinds that do."""
    known = pages().values()
    by_code = [
        CompletionItem(page.code, help=page.title)
        for page in known if page.code.startswith(begun.upper())
    ]
    by_kind = [
        CompletionItem(page.kind, help=page.title)
        for page in known if begun and page.kind.startswith(begun)
    ]
    return by_code + by_kind
