"""The command `tecomp`: what it prints, and with which exit status."""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from click.testing import CliRunner

import tecomp
from tecomp import cli, demo
from tecomp.codegen.store import Store


def test_version() -> None:
    done = CliRunner().invoke(cli.main, ["--version"], prog_name="tecomp")

    assert (done.exit_code, done.output) == (0, f"tecomp {version('tecomp')}\n")


def test_targets_are_listed_with_their_memories() -> None:
    done = CliRunner().invoke(cli.main, ["targets"])
    listed = dict(line.split(maxsplit=1) for line in done.output.splitlines())

    assert done.exit_code == 0
    assert list(listed) == list(tecomp.list_targets())
    assert listed["cpu"].startswith("global (rank 1), global.texture (rank 2)")


def cache(*words: str, **variables: str) -> tuple[int, str]:
    """Exit status and output of `tecomp cache` where the environment says this."""
    names = ("TECOMP_CACHE", "TECOMP_CACHE_DIR", "TECOMP_CACHE_SIZE")
    env = {name: variables.get(name) for name in names}
    done = CliRunner().invoke(cli.main, ["cache", *words], env=env)
    return done.exit_code, done.output


def test_the_cache_is_shown_and_cleared(tmp_path: Path) -> None:
    folder = tmp_path / "compiled"
    there = {"TECOMP_CACHE_DIR": str(tmp_path), "TECOMP_CACHE_SIZE": "2"}
    shown = "folder   {}\nentries  {}\nbytes    {} of 2000000\n"

    assert cache(**there) == (0, shown.format(folder, 0, 0))
    Store(folder, 1000).put("a", b"code")
    assert cache(**there) == (0, shown.format(folder, 1, 45))
    assert cache("clear", **there) == (0, "removed 1 entries, 45 bytes\n")
    assert cache(**there) == (0, shown.format(folder, 0, 0))


def test_a_cache_that_is_off_or_misspelt() -> None:
    assert cache(TECOMP_CACHE="off") == (
        1, "Error: cache: it is off; unset TECOMP_CACHE to use it\n",
    )  # fmt: skip
    assert cache("clear", TECOMP_CACHE="no") == (
        1, "Error: TECOMP_CACHE: expected on or off, got 'no'; unset it for on\n",
    )  # fmt: skip


@pytest.mark.parametrize("library", ["matplotlib", "scipy"])
def test_demo_names_the_extra(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    done = CliRunner().invoke(cli.main, ["demo"])

    assert done.exit_code == 1
    assert done.output == (
        f"Error: demo: {library} is not installed; "
        "install the extra with it: pip install 'tecomp[demo]'\n"
    )


def test_demo_refuses_a_folder_that_is_not_there(tmp_path: Path) -> None:
    output = tmp_path / "nowhere" / "demo.png"
    done = CliRunner().invoke(cli.main, ["demo", "--output", str(output)])

    assert done.exit_code == 2
    assert done.output.splitlines()[-1] == (
        f"Error: Invalid value for --output: there is no folder {output.parent}"
    )


def test_demo_fails_when_the_numbers_differ(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo, "run", lambda output, show: False)
    done = CliRunner().invoke(cli.main, ["demo", "--output", str(tmp_path / "demo.png")])

    assert done.exit_code == 1
    assert done.output == "Error: demo: the compiled features differ from SciPy's\n"


def test_demo_runs_and_writes_its_picture(tmp_path: Path) -> None:
    output = tmp_path / "demo.png"
    done = CliRunner().invoke(cli.main, ["demo", "--output", str(output)])

    assert done.exit_code == 0, done.output
    assert "the numbers agree" in done.output
    assert output.read_bytes().startswith(b"\x89PNG\r\n")
    for title in ("input", "schedule", "lowered function", "shapes", "compile", "run", "check"):
        assert f"\n--- {title} --" in done.output
