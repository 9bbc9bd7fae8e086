"""docs/cli.md: every command in it exists with these words, and none is missing from it."""

import shlex
from collections.abc import Iterator

import click

from mizan.__main__ import main
from tests.readme.documents import ROOT, Document, all_documents, commands

PAGE = Document(ROOT / "docs" / "cli.md")


def test_the_page_knows_every_command() -> None:
    told = {" ".join(_found(line)[1]) for block in PAGE.code("sh") for line in commands(block)}
    assert told == {" ".join(path) for path in _all(main)}


def test_every_command_in_the_documents_exists_with_its_options() -> None:
    """In fenced blocks of all documents; what words stand for is not judged."""
    for document in all_documents():
        for block in document.code("sh"):
            for line in commands(block):
                if line.startswith("bin/mizan "):
                    command, _, words = _found(line)
                    command.make_parser(click.Context(command)).parse_args(words)


def _found(line: str) -> tuple[click.Command, list[str], list[str]]:
    """The command, its name, and the words behind it."""
    command: click.Command = main
    path: list[str] = []
    words = shlex.split(line, comments=True)[1:]
    while isinstance(command, click.Group):
        assert words, f"{line!r} ends with a group"
        assert words[0] in command.commands, f"{line!r}: there is no {words[0]}"
        command = command.commands[words[0]]
        path.append(words.pop(0))
    return command, path, words


def _all(group: click.Group) -> Iterator[list[str]]:
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            yield from ([name, *rest] for rest in _all(command))
        else:
            yield [name]
