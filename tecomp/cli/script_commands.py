"""`tecomp lower` and `tecomp viz`: inspect schedules in a script."""

from __future__ import annotations

import json
from pathlib import Path

import click

import tecomp
from tecomp.cli.common import complaint, defined, machines, scheduled, with_json
from tecomp.driver.build import ScheduledKernel
from tecomp.errors import TecompError
from tecomp.lowering.pipeline import STAGES


@click.command()
@click.argument("source", metavar="SCRIPT:NAME")
@click.option(
    "--target", default="cpu", show_default=True, help="The machine.", shell_complete=machines,
)
@click.option(
    "--stage", type=click.Choice(["schedule", *STAGES, "all"]), default=STAGES[-1],
    show_default=True, help="After which pass.",
)
@click.option(
    "--form", type=click.Choice(["ir", "llvm", "asm"]), default="ir", show_default=True,
    help="Loops, LLVM, or assembly of the machine at hand.",
)
@with_json
def lower(source: str, target: str, stage: str, form: str, as_json: bool) -> None:
    """Print the loops of a schedule, after any pass of lowering, or the code made of them.

    NAME in SCRIPT is a pair, as tecomp.build takes it: a schedule, or a tensor that nobody
    scheduled, and the list of arguments. It may be a function that gives one.
    """
    try:
        results, arguments = scheduled(source)
        kernel = tecomp.build(results, arguments, target=target)
    except TecompError as error:
        raise click.ClickException(complaint(error, source)) from error
    texts = _texts(kernel, stage, form)
    if as_json:
        click.echo(json.dumps(texts, indent=2))
    elif len(texts) == 1:
        click.echo("".join(texts.values()))
    else:
        for name, text in texts.items():
            click.echo(f"# {name}\n{text}\n")


def _texts(kernel: ScheduledKernel, stage: str, form: str) -> dict[str, str]:
    """What is asked for, by the names of passes or of the form."""
    if form != "ir":
        return {form: kernel.source("llvm" if form == "llvm" else "asm")}
    if stage == "schedule":
        return {stage: str(kernel.schedule.trace)}
    functions = kernel.lowered.functions
    return {name: str(functions[name]) for name in (functions if stage == "all" else [stage])}


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
