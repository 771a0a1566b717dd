"""`tecomp lower` and `tecomp viz`: inspect schedules of a script, and lower ptensor texts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import click

import tecomp
from tecomp.cli.common import (
    format_error,
    load_definitions,
    machines,
    parse_schedule_value,
    with_json,
)
from tecomp.errors import TecompError
from tecomp.lowering.pipeline import STAGES
from tecomp.ptensor.lowering.lower import lower_ptensor
from tecomp.ptensor.lowering.runtime_calls import dist_to_runtime
from tecomp.ptensor.parse import parse_module

LOWER_PTENSOR, DIST_TO_RUNTIME = PTENSOR_PASSES = ("lower-ptensor", "dist-to-intel-runtime")


@click.command()
@click.argument("source", metavar="SCRIPT:NAME|TEXT")
@click.option(
    "--target", default="cpu", show_default=True, shell_complete=machines,
    help="Target: a name listed by `tecomp targets`, or the path of a TOML file.",
)
@click.option(
    "--stage", type=click.Choice(["schedule", *STAGES, *PTENSOR_PASSES, "all"]),
    help="Pass after which to print the function. Default: the last pass.",
)
@click.option(
    "--form", type=click.Choice(["ir", "llvm", "asm"]), default="ir", show_default=True,
    help="Loops, LLVM IR, or assembly code of the host CPU.",
)
@click.option(
    "--ignore-team", is_flag=True, help="Lower ptensor functions for a single process.",
)
@with_json
def lower(
    source: str, target: str, stage: str | None, form: str, ignore_team: bool, as_json: bool
) -> None:
    """Print the loops of a schedule after any lowering pass, or the generated code.

    NAME in SCRIPT is a pair, as for tecomp.build: a schedule, or a tensor without a schedule, and
    the list of arguments. NAME can be a function that returns the pair.

    TEXT is a file with ptensor functions. Its passes are lower-ptensor
    and dist-to-intel-runtime.
    """
    path = Path(source)
    if path.suffix != ".py" and path.is_file():
        _check_stage(stage, PTENSOR_PASSES, "ptensor functions")
        if form != "ir":
            raise click.BadParameter(
                "ptensor functions can be lowered to ir only", param_hint="--form"
            )
        texts = _ptensor_texts(path, stage or DIST_TO_RUNTIME, ignore_team=ignore_team)
    else:
        _check_stage(stage, ("schedule", *STAGES), "schedules")
        texts = _schedule_texts(source, target, stage or STAGES[-1], form)
    if as_json:
        click.echo(json.dumps(texts, indent=2))
    elif len(texts) == 1:
        click.echo("".join(texts.values()))
    else:
        for name, text in texts.items():
            click.echo(f"# {name}\n{text}\n")


def _check_stage(stage: str | None, passes: Sequence[str], name: str) -> None:
    if stage is not None and stage not in (*passes, "all"):
        raise click.BadParameter(
            f"{stage} is not a pass of {name}; these are {', '.join(passes)}", param_hint="--stage")


def _ptensor_texts(path: Path, stage: str, *, ignore_team: bool) -> dict[str, str]:
    """Return the functions of a text after the requested passes."""
    try:
        lowered = lower_ptensor(parse_module(path.read_text(encoding="utf-8")), ignore_team)
        texts = {LOWER_PTENSOR: str(lowered)}
        if stage != LOWER_PTENSOR:
            texts[DIST_TO_RUNTIME] = str(dist_to_runtime(lowered))
    except TecompError as error:
        raise click.ClickException(f"{path}: {error.message}") from error
    except UnicodeDecodeError as error:
        raise click.ClickException(f"{path}: expected a text in UTF-8, got {error}") from error
    return texts if stage == "all" else {stage: texts[stage]}


def _schedule_texts(source: str, target: str, stage: str, form: str) -> dict[str, str]:
    """Return the requested texts of a schedule by the names of passes or of the form."""
    try:
        results, arguments = parse_schedule_value(source)
        kernel = tecomp.build(results, arguments, target=target)
    except TecompError as error:
        raise click.ClickException(format_error(error, source)) from error
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
    default=Path("tecomp.svg"), show_default=True, help="Output file, .svg or .html.",
)
@with_json
def viz(source: str, output: Path, as_json: bool) -> None:
    """Draw a layout, a schedule, a kernel, a program or any other object with a figure.

    NAME in SCRIPT is the object, or a function that returns it.
    """
    if not output.parent.is_dir():
        raise click.BadParameter(f"directory not found: {output.parent}", param_hint="--output")
    try:
        value = load_definitions(source)
        if not hasattr(value, "picture"):
            raise click.BadParameter(f"{source} is {type(value).__name__}, which has no figure")
        value.picture().save(output)
    except TecompError as error:
        raise click.ClickException(format_error(error, source)) from error
    click.echo(json.dumps({"picture": str(output)}) if as_json else output)
