"""`python -m stack clean` removes the data of a stack."""

import dataclasses
import os
from pathlib import Path

import pytest

from stack.errors import StackError
from stack.options import Options, read_options
from stack.state_directory import clean, lock_directory


@pytest.fixture
def options(tmp_path: Path) -> Options:
    """A directory in which a stack has run."""
    directory = tmp_path / "stack"
    with lock_directory(directory, os.getpid()):
        (directory / "postgres" / "data").mkdir(parents=True)
        (directory / "ports.json").write_text("{}")
    return dataclasses.replace(read_options(), directory=directory)


def test_clean_removes_the_directory(options: Options) -> None:
    """Nothing is left of a directory that held only a stack."""
    clean(options)
    assert not options.directory.exists()


def test_clean_leaves_other_files(options: Options) -> None:
    """STACK_DIR may contain other files, which stay."""
    (options.directory / "thesis.txt").write_text("years of work")
    clean(options)
    assert [path.name for path in options.directory.iterdir()] == ["thesis.txt"]


def test_clean_refuses_while_a_stack_runs(options: Options) -> None:
    """The lock of a running stack protects its data."""
    with (
        lock_directory(options.directory, os.getpid()),
        pytest.raises(StackError, match=f"pid {os.getpid()}"),
    ):
        clean(options)
    assert (options.directory / "postgres").exists()


def test_clean_without_a_stack_does_nothing(options: Options, tmp_path: Path) -> None:
    """If no stack has run there, nothing is created."""
    clean(dataclasses.replace(options, directory=tmp_path / "never"))
    assert not (tmp_path / "never").exists()
