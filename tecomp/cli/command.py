"""The commands of `tecomp`, as one group."""

from __future__ import annotations

import click

from tecomp.cli.bench import bench
from tecomp.cli.cache import cache
from tecomp.cli.completion import completion
from tecomp.cli.demo import demo
from tecomp.cli.doctor import doctor
from tecomp.cli.explain import explain
from tecomp.cli.lower import lower
from tecomp.cli.run import run
from tecomp.cli.targets import check_target, new_target, targets
from tecomp.cli.viz import viz


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="tecomp", message="%(prog)s %(version)s")
def main() -> None:
    """Tensor expressions, schedules and memory layouts, compiled to native code."""


for _command in (
    bench, cache, check_target, completion, demo, doctor, explain, lower, new_target, run, targets,
    viz,
):
    main.add_command(_command)
