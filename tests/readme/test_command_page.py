"""docs/cli.md lists every command, and the commands of all documents exist."""

import re
import shlex
from collections.abc import Iterator

import click

from mizan.__main__ import main
from tests.mizan.subcommands import subcommands
from tests.readme.documents import ROOT, Document, all_documents, commands

_CALL = re.compile(r"(?:bin/|docker compose run --rm \w+ )mizan (.*)")
_IN_PROSE = re.compile(r"`(?:bin/)?mizan ([^`\n]+)`")
PAGE = Document(ROOT / "docs" / "cli.md")


def test_page_lists_every_command() -> None:
    listed = {" ".join(_parse(line)[1]) for block in PAGE.code("sh") for line in commands(block)}
    assert listed == {" ".join(path) for path in _command_paths(main)}


def test_every_command_in_the_documents_exists_with_its_options() -> None:
    """In fenced blocks of all documents. Only names are checked, not values."""
    for document in all_documents():
        for block in document.code("sh"):
            for line in commands(block):
                if called := _CALL.match(line):
                    command, _, words = _parse(f"mizan {called[1]}")
                    command.make_parser(click.Context(command)).parse_args(words)


def test_every_command_in_prose_exists_with_its_options() -> None:
    """There arguments may be left out, and a group may stand for its commands."""
    for document in all_documents():
        if document.path.name != "CHANGELOG.md":  # it also names commands of earlier versions
            for called in _IN_PROSE.findall(document.text):
                _check_names(f"{document.path.name}: mizan {called}", called.replace("…", "").split())


def _check_names(call: str, words: list[str]) -> None:
    command: click.Command = main
    while words and isinstance(command, click.Group):
        assert words[0] in subcommands(command), call
        command = subcommands(command)[words.pop(0)]
    options = {name for parameter in command.params for name in parameter.opts} | {"-h", "--help"}
    named = {word for word in words if re.fullmatch("--?[a-z-]+", word)}
    assert named <= options, call


def _parse(line: str) -> tuple[click.Command, list[str], list[str]]:
    """Return the command, its path, and its arguments."""
    command: click.Command = main
    path: list[str] = []
    words = shlex.split(line, comments=True)[1:]
    while isinstance(command, click.Group):
        assert words, f"{line!r} ends with a group"
        assert words[0] in subcommands(command), f"{line!r}: there is no {words[0]}"
        command = subcommands(command)[words[0]]
        path.append(words.pop(0))
    return command, path, words


def _command_paths(group: click.Group) -> Iterator[list[str]]:
    for name, command in subcommands(group).items():
        if isinstance(command, click.Group):
            yield from ([name, *rest] for rest in _command_paths(command))
        elif not command.hidden:
            yield [name]
