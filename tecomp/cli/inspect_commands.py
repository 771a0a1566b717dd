"""Commands that inspect scripts, programs and targets."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

import tecomp
from tecomp.cli.common import (
    format_error,
    load_definitions,
    machines,
    parse_schedule_value,
    show,
    with_json,
)
from tecomp.errors import TargetError, TecompError
from tecomp.lowering.pipeline import STAGES
from tecomp.machine.registry import broken_plugins
from tecomp.plugin.skeleton import write_skeleton
from tecomp.ptensor.lowering.device_regions import dist_to_runtime
from tecomp.ptensor.lowering.lower import lower_ptensor
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


@click.command()
@with_json
def targets(as_json: bool) -> None:
    """List the described machines."""
    if as_json:
        show([_describe(name) for name in tecomp.list_targets()], as_json=True)
        return
    names = tecomp.list_targets()
    width = max((len(name) for name in names), default=0) + 2
    for name in names:
        try:
            memories = tecomp.Target.load(name).memories.values()
        except TargetError as error:
            click.echo(f"{name:<{width}}{error.message}")
            continue
        spaces = ", ".join(f"{memory.name} (rank {memory.rank})" for memory in memories)
        click.echo(f"{name:<{width}}{spaces}")
    for complaint in broken_plugins():
        click.echo(complaint, err=True)


def _describe(name: str) -> dict[str, object]:
    try:
        target = tecomp.Target.load(name)
    except TargetError as error:
        return {"name": name, "error": error.message}
    return {
        "name": name,
        "description": target.description,
        "grid": dict(target.grid),
        "memories": {
            memory.name: {
                "rank": memory.rank, "scope": memory.scope, "bytes": memory.capacity_bytes
            }
            for memory in target.memories.values()
        },
    }


@click.command()
@click.argument("name", shell_complete=machines)
@with_json
def check_target(name: str, as_json: bool) -> None:
    """Check that programs run on all components that a target describes.

    NAME is an installed target, or the path of a TOML file. The exit status is 0 only if all checks
    pass.
    """
    try:
        checks = tecomp.check_target(name)
    except TargetError as error:
        raise click.ClickException(error.message) from error
    if as_json:
        show([asdict(check) for check in checks], as_json=True)
    else:
        for check in checks:
            click.echo(f"{'ok' if check.passed else 'FAILED':<8}{check.title}: {check.detail}")
    if failed := sum(not check.passed for check in checks):
        raise click.ClickException(f"{name} failed {failed} of {len(checks)} checks")


@click.command()
@click.argument("name")
@with_json
def new_target(name: str, as_json: bool) -> None:
    """Write a package that describes a machine, in a new directory NAME."""
    try:
        files = write_skeleton(name, Path.cwd())
    except TargetError as error:
        raise click.ClickException(error.message) from error
    file_names = [str(path.relative_to(Path.cwd())) for path in files]
    if as_json:
        click.echo(json.dumps({"files": file_names}, indent=2))
        return
    click.echo("\n".join(file_names))
    click.echo(f"next: pip install -e {name} && tecomp check-target {name}")
