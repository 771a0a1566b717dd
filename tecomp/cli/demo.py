"""`tecomp demo`: the main job, on any machine that is described."""

from __future__ import annotations

import json
from pathlib import Path

import click

import tecomp
from tecomp import demo as demonstration
from tecomp.cli.output import with_json
from tecomp.cli.words import machines
from tecomp.errors import TecompError


@click.command()
@click.option(
    "--target", "name", default="cpu", show_default=True, shell_complete=machines,
    help="The machine: one of `tecomp targets`, or the path of a TOML file.",
)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    default=Path("tecomp-demo.png"),
    show_default=True,
    help="Where the picture of input and feature maps goes.",
)
@click.option(
    "--timeline",
    type=click.Path(dir_okay=False, writable=True, path_type=Path),
    help="Where the modelled timeline goes, as a trace for Perfetto; nowhere by default.",
)
@with_json
def demo(name: str, output: Path, timeline: Path | None, as_json: bool) -> None:
    """Filter a photograph, and compare the numbers with SciPy's.

    On the processor at hand, times stand beside those of NumPy and SciPy. On any other machine the
    filters run as they would run there, with its memories and cores, and a report says what that
    would cost. The exit status is 0 only if the numbers agree.
    """
    for option, path in (("--output", output), ("--timeline", timeline)):
        if path is not None and not path.parent.is_dir():
            raise click.BadParameter(f"there is no folder {path.parent}", param_hint=option)
    shown: list[str] = []
    try:
        agree = demonstration.run(
            demonstration.Job(tecomp.Target.load(name), output, timeline),
            shown.append if as_json else click.echo,
        )
    except ModuleNotFoundError as error:
        if error.name not in ("matplotlib", "scipy"):
            raise
        raise click.ClickException(
            f"demo: {error.name} is not installed; "
            "install the extra with it: pip install 'tecomp[demo]'"
        ) from error
    except TecompError as error:
        raise click.ClickException(f"demo: {error.message}") from error
    if as_json:
        told = {"target": name, "agree": bool(agree), "picture": str(output), "text": shown}
        click.echo(json.dumps(told, indent=2))
    if not agree:
        raise click.ClickException("demo: the compiled features differ from SciPy's")
