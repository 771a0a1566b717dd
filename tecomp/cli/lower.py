"""`tecomp lower`: what a schedule of a script becomes."""

from __future__ import annotations

import click

import tecomp
from tecomp.cli.scripts import scheduled
from tecomp.errors import TecompError
from tecomp.lowering.pipeline import STAGES


@click.command()
@click.argument("source", metavar="SCRIPT:NAME")
@click.option("--target", default="cpu", show_default=True, help="The machine.")
@click.option(
    "--stage", type=click.Choice(["schedule", *STAGES, "all"]), default=STAGES[-1],
    show_default=True, help="After which pass.",
)
@click.option(
    "--form", type=click.Choice(["ir", "llvm", "asm"]), default="ir", show_default=True,
    help="Loops, LLVM, or assembly of the machine at hand.",
)
def lower(source: str, target: str, stage: str, form: str) -> None:
    """Print the loops of a schedule, after any pass of lowering, or the code made of them.

    NAME in SCRIPT is a pair, as tecomp.build takes it: a schedule, or a tensor that nobody
    scheduled, and the list of arguments. It may be a function that gives one.
    """
    try:
        results, arguments = scheduled(source)
        kernel = tecomp.build(results, arguments, target=target)
    except TecompError as error:
        raise click.ClickException(error.message) from error
    if form != "ir":
        click.echo(kernel.source("llvm" if form == "llvm" else "asm"))
    elif stage == "schedule":
        click.echo(kernel.schedule.trace)
    elif stage == "all":
        for name, function in kernel.lowered.functions.items():
            click.echo(f"# {name}\n{function}\n")
    else:
        click.echo(kernel.lowered.functions[stage])
