"""Wheels and source archives contain exactly the files of the repository."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
LIBRARIES = {name: ROOT / name.partition(".")[2] for name in ("tecomp.schedules", "tecomp.targets")}
TOP_FILES = [
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE",
    "MANIFEST.in",
    "README.md",
    "THIRD_PARTY.md",
    "build_backend.py",
    "pyproject.toml",
]
FOLDERS = ["docs", "schedules", "targets", "tecomp", "tests", "tutorials"]

BUILD = """
import sys
import build_backend
print(getattr(build_backend, sys.argv[1])(sys.argv[2]))
"""


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def sources(folder: Path) -> list[Path]:
    """Return the files of a folder, without files that running them creates."""
    return [
        path
        for path in folder.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".pyc"
    ]


def package_files() -> set[str]:
    """Return the files of an installation, as paths inside the wheel."""
    files = {str(path.relative_to(ROOT)) for path in sources(ROOT / "tecomp")}
    for package, home in LIBRARIES.items():
        inside = package.replace(".", "/")
        files |= {f"{inside}/{path.relative_to(home)}" for path in sources(home)}
    return files


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the repository, since a build writes files."""
    copy = tmp_path_factory.mktemp("checkout")
    for name in TOP_FILES:
        shutil.copy(ROOT / name, copy)
    for name in FOLDERS:
        shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


def python(
    *arguments: str, cwd: Path, path: str | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env=os.environ | ({"PYTHONPATH": path} if path else {}),
        capture_output=True,
        text=True,
        check=False,
    )


def build(checkout: Path, hook: str) -> Path:
    out = checkout / hook
    out.mkdir()
    done = python("-c", BUILD, hook, str(out), cwd=checkout)
    assert done.returncode == 0, done.stderr
    return out / done.stdout.splitlines()[-1]


@pytest.fixture(scope="module")
def wheel(checkout: Path) -> Path:
    return build(checkout, "build_wheel")


def test_the_list_of_packages_is_the_tree() -> None:
    setuptools = project()["tool"]["setuptools"]
    tree = {
        ".".join(path.parent.relative_to(ROOT).parts)
        for path in (ROOT / "tecomp").rglob("__init__.py")
    }

    tree |= {
        ".".join([name, *path.parent.relative_to(home).parts])
        for name, home in LIBRARIES.items() for path in home.rglob("*.py")
    }

    assert setuptools["packages"] == sorted(tree | LIBRARIES.keys())
    assert setuptools["package-dir"] == {name: home.name for name, home in LIBRARIES.items()}


def test_every_folder_with_code_is_a_package() -> None:
    stray = {
        path.parent.relative_to(ROOT)
        for path in (ROOT / "tecomp").rglob("*.py")
        if not (path.parent / "__init__.py").exists()
    }

    assert stray == set()


@pytest.mark.exhaustive
def test_a_wheel_holds_the_package_and_nothing_else(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())

    assert {name for name in names if ".dist-info/" not in name} == package_files()
    assert {name.partition("/")[2] for name in names if ".dist-info/licenses/" in name} == {
        "licenses/LICENSE",
        "licenses/THIRD_PARTY.md",
    }


def test_an_installed_wheel_finds_its_targets(wheel: Path, tmp_path: Path) -> None:
    zipfile.ZipFile(wheel).extractall(tmp_path)
    program = (
        "import tecomp.targets as t\n"
        "print(t.__file__)\n"
        "print(*sorted(path.name for path in t.descriptions()))"
    )
    done = python("-W", "error", "-c", program, cwd=tmp_path, path=str(tmp_path))

    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        str(tmp_path / "tecomp" / "targets" / "__init__.py"),
        " ".join(sorted(path.name for path in (ROOT / "targets").glob("*.toml"))),
    ]


def unpacked(wheel: Path, home: Path) -> Path:
    """Return the site-packages folder of a new environment with a wheel."""
    venv.create(home, with_pip=False, symlinks=True)
    site = next(home.glob("[Ll]ib/**/site-packages"))
    zipfile.ZipFile(wheel).extractall(site)
    return site


@pytest.fixture(scope="module")
def editable(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the site-packages folder of an environment with an editable install only."""
    return unpacked(build(checkout, "build_editable"), tmp_path_factory.mktemp("environment"))


def test_an_editable_install_finds_the_checkout(checkout: Path, editable: Path) -> None:
    """An editable install finds the checkout without the import hooks of this environment."""
    program = (
        "import site, sys\n"
        f"sys.path.append({sysconfig.get_path('platlib')!r})\n"
        f"site.addsitedir({str(editable)!r})\n"
        "import tecomp, tecomp.targets\n"
        "print(tecomp.__file__, tecomp.targets.__file__, *tecomp.list_targets())"
    )
    done = python("-S", "-W", "error", "-c", program, cwd=editable)

    assert done.returncode == 0, done.stderr
    package, targets, *names = done.stdout.split()
    assert Path(package) == checkout / "tecomp" / "__init__.py"
    assert Path(targets) == checkout / "targets" / "__init__.py"
    assert names == sorted(path.stem for path in (ROOT / "targets").glob("*.toml"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the site-packages folder of an environment with the wheel only."""
    return unpacked(wheel, tmp_path_factory.mktemp("environment"))


def test_type_checkers_find_each_module_of_an_editable_install(editable: Path) -> None:
    stubs = editable / "tecomp-stubs"

    assert {path.relative_to(stubs).with_suffix(".py") for path in stubs.rglob("*.pyi")} == {
        path.relative_to(ROOT)
        for name in ("schedules", "targets") for path in (ROOT / name).rglob("*.py")
    }


def types_told(program: Path, site: Path, where: Path) -> list[str]:
    """Return the mypy type of each `reveal_type` of a program, without module names."""
    # Use the libraries of this environment, but not its import hooks.
    (site / "libraries.pth").write_text(f"{sysconfig.get_path('platlib')}\n", encoding="utf-8")
    interpreter = site.parents[2] / "bin" / "python"
    shutil.copy(program, where)
    done = python(
        "-m", "mypy", "--strict", "--config-file=", "--cache-dir", str(where / "cache"),
        "--python-executable", str(interpreter), program.name, cwd=where,
    )
    assert done.returncode == 0, done.stdout
    reported = re.findall('Revealed type is "(.*)"', done.stdout)
    return [re.sub(r"\b(?:\w+\.)+(\w+)", r"\1", item) for item in reported]


@pytest.mark.parametrize("kind", ["editable", "installed"])
def test_public_functions_are_typed(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    pytest.importorskip("mypy")
    program = Path(__file__).with_name("typed_user.py")
    expected = re.findall(r"^reveal_type.*  # (.*)$", program.read_text(encoding="utf-8"), re.M)

    assert types_told(program, request.getfixturevalue(kind), tmp_path) == expected


@pytest.mark.exhaustive
def test_a_source_archive_holds_the_tests_and_the_documents(checkout: Path) -> None:
    with tarfile.open(build(checkout, "build_sdist")) as archive:
        names = {member.name.partition("/")[2] for member in archive if member.isfile()}
    expected = set(TOP_FILES) | {
        str(path.relative_to(ROOT))
        for folder in FOLDERS
        for path in sources(ROOT / folder)
    }

    assert expected - names == set()


def test_the_installed_libraries_do_not_answer_to_their_short_names() -> None:
    """From the repository root, `import targets` would load a second copy of the package."""
    done = python("-c", "import targets", cwd=ROOT)

    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "ImportError: import tecomp.targets, not targets (run `pip install -e .` first)"
    )
