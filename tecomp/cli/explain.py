"""`tecomp explain`: what the code of an error means."""

from __future__ import annotations

import json
from difflib import get_close_matches

import click

from tecomp.cli.output import show, with_json
from tecomp.cli.words import codes
from tecomp.pages import document, page_of, pages


@click.command()
@click.argument("code", required=False, shell_complete=codes)
@click.option("--markdown", is_flag=True, help="Print the pages of all codes, as docs/errors.md.")
@with_json
def explain(code: str | None, markdown: bool, as_json: bool) -> None:
    """Explain an error by its CODE, such as TE0201, with an example; list all codes without one."""
    if markdown:
        click.echo(document(), nl=False)
        return
    if code is None:
        listed = [
            {"code": each.code, "kind": each.kind, "title": each.title} for each in pages().values()
        ]
        show(listed, as_json=as_json)
        return
    if (page := page_of(code)) is None:
        near = get_close_matches(code.lower(), list(pages()), n=1)
        hint = f"did you mean {near[0]}? " if near else ""
        raise click.ClickException(
            f"explain: there is no error {code!r}; {hint}tecomp explain lists all codes"
        )
    if as_json:
        click.echo(json.dumps({"code": page.code, "page": str(page)}, indent=2))
    else:
        click.echo(page, nl=False)
