"""Files and folders are replaced completely or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from tecomp.atomic_writes import file_replacement, folder_replacement


def test_a_file_is_replaced_when_it_is_complete(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    with file_replacement(path) as part:
        part.write_text("new")
        assert path.read_text() == "old"

    assert path.read_text() == "new"
    assert [*tmp_path.iterdir()] == [path]


def test_a_folder_is_replaced_with_all_of_its_files(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.mkdir()
    (path / "old").write_text("old")
    with folder_replacement(path) as part:
        (part / "new").write_text("new")
        assert [file.name for file in path.iterdir()] == ["old"]

    assert [file.name for file in path.iterdir()] == ["new"]
    assert [*tmp_path.iterdir()] == [path]


def fail_in(part: Path) -> None:
    part.write_text("new")
    raise ValueError("stop")


def test_a_failure_keeps_the_previous_contents(tmp_path: Path) -> None:
    file, folder = tmp_path / "a.txt", tmp_path / "a"
    file.write_text("old")
    folder.mkdir()
    with pytest.raises(ValueError, match="stop"), file_replacement(file) as part:
        fail_in(part)
    with pytest.raises(ValueError, match="stop"), folder_replacement(folder) as part:
        fail_in(part / "new")

    assert file.read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "a.txt"]
    assert [*folder.iterdir()] == []


def test_a_missing_folder_raises_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), file_replacement(tmp_path / "b" / "a.txt") as part:
        part.write_text("new")
