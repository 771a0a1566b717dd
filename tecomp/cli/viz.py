"""`tecomp viz`: what a script defines, as a picture."""

from __future__ import annotations

import json
from pathlib import Path

import click

from tecomp.cli.output import with_json
from tecomp.cli.scripts import complaint, defined
from tecomp.errors import TecompError


@click.command()
@click.argument("source", metavar="SCRIPT:NAME")
@click.option(
    "--output", "-o", type=click.Path(dir_okay=False, path_type=Path),
    default=Path("tecomp.svg"), show_default=True, help="A file .svg or .html.",
)
@with_json
def viz(source: str, output: Path, as_json: bool) -> None:
    """Draw a layout, a schedule, a kernel, a program or what else has a picture.

    NAME in SCRIPT is the object, or a function that gives it.
    """
    if not output.parent.is_dir():
        raise click.BadParameter(f"there is no folder {output.parent}", param_hint="--output")
    try:
        value = defined(source)
        if not hasattr(value, "picture"):
            raise click.BadParameter(f"{source} is {type(value).__name__}, which has no picture")
        value.picture().save(output)
    except TecompError as error:
        raise click.ClickException(complaint(error, source)) from error
    click.echo(json.dumps({"picture": str(output)}) if as_json else output)
