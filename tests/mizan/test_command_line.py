"""`mizan` finds its installation, or reports in one clear message why not."""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from mizan.__main__ import main
from shared.platform.database.pool import Database
from shared.platform.database.schema import head_revision
from shared.platform.settings import DatabaseSettings, KafkaSettings, environment, find_stack_file
from stack.ports import find_free_ports
from tests.database_roles import url_as
from tests.mizan.conftest import Mizan
from tests.mizan.subcommands import subcommands


def test_running_stack_is_found_by_its_directory(
    repository_root: Path, database_settings: DatabaseSettings, kafka_settings: KafkaSettings, tmp_path: Path
) -> None:
    """`bin/mizan` needs only STACK_DIR. Migrating again prints the current revision."""
    stack = {
        "database_url": database_settings.url,
        "kafka_bootstrap_servers": kafka_settings.bootstrap_servers,
    }
    (tmp_path / "stack.json").write_text(json.dumps(stack))
    answer = subprocess.run(
        [str(repository_root / "bin" / "mizan"), "migrate"],
        # The launcher needs PATH.
        env={"PATH": os.environ["PATH"], "STACK_DIR": str(tmp_path)},  # noqa: TID251
        capture_output=True,
        text=True,
        check=False,
    )
    assert (answer.returncode, answer.stdout) == (0, f"schema is at revision {head_revision()}\n"), (
        answer.stderr
    )


def test_commands_use_the_role_of_the_command_line_and_migrations_that_of_the_owner(
    run: Mizan, database_settings: DatabaseSettings, tmp_path: Path
) -> None:
    """Both addresses are in stack.json. An earlier one has only one."""
    nowhere, as_cli = "postgresql://nobody@127.0.0.1:1/nothing", url_as("mizan_cli", database_settings.url)
    given = {"DATABASE_URL": None, "STACK_DIR": str(tmp_path)}
    cases = (
        (("app", "list"), {"database_url": nowhere, "cli_database_url": as_cli}),
        (("app", "list"), {"database_url": as_cli}),
        (("migrate",), {"database_url": database_settings.url, "cli_database_url": nowhere}),
    )
    for command, stack in cases:
        (tmp_path / "stack.json").write_text(json.dumps(stack))
        assert run(*command, **given).exit_code == 0


def test_stack_is_looked_for_here_and_beside_the_code(
    run: Mizan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without STACK_DIR. If there is none, the message says where it was looked for, and what to do."""
    here, project = tmp_path / "here", tmp_path / "project"
    here.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setattr(environment, "PROJECT", project)
    nothing = {"STACK_DIR": "", "DATABASE_URL": None, "KAFKA_BOOTSTRAP_SERVERS": None}
    answer = run("app", "list", **nothing)
    assert f"No running stack was found in {here / '.run'} and {project / '.run'}: start one" in answer.stderr
    for directory in (project, here):
        (directory / ".run").mkdir(parents=True)
        (directory / ".run" / "stack.json").write_text("{}")
        assert find_stack_file() == directory / ".run" / "stack.json"
    assert "No running stack" not in run("app", "list", **nothing).stderr


def test_version_is_that_of_the_newest_release(run: Mizan, repository_root: Path) -> None:
    """Each release in the changelog has its date."""
    changelog = (repository_root / "CHANGELOG.md").read_text()
    headings = [line for line in changelog.splitlines() if line.startswith("## ") and line != "## Unreleased"]
    releases = [re.fullmatch(r"## (\d+\.\d+\.\d+) \(\d{4}-\d\d-\d\d\)", line) for line in headings]
    assert all(releases), headings
    assert releases[0] is not None
    assert run("--version").stdout == f"mizan {releases[0][1]}\n"


def test_help_texts_are_not_cut_off(run: Mizan) -> None:
    """Not even in a terminal of 80 columns."""
    groups = [name for name, command in subcommands(main).items() if isinstance(command, click.Group)]
    for words in ([], *([group] for group in groups)):
        assert "..." not in run(*words, "--help").stdout.partition("Commands:")[2]


def test_help_is_plain_whole_sentences(repository_root: Path) -> None:
    """Every command and option explains itself, and no text uses the words that people did not understand."""
    unclear = re.compile(
        "could not be looked|Again is fine|Safe to run again|by chance|ladder|used up|go together|as they may"
    )
    for path, command in _all_commands(main, "mizan"):
        texts = [command.help, *(one.help for one in command.params if isinstance(one, click.Option))]
        for text in texts:
            if text is None:  # such as --email, whose name says it
                continue
            assert text[0].isupper(), (path, text)
            assert text.rstrip()[-1] in ".]", (path, text)
        assert command.help, path
    for source in (repository_root / "mizan").rglob("*.py"):
        assert not unclear.search(source.read_text()), source


def _all_commands(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    yield path, command
    for name, below in subcommands(command).items():
        yield from _all_commands(below, f"{path} {name}")


def test_json_is_an_object_for_every_list(run: Mizan) -> None:
    made = json.loads(run("app", "create", "--name", "Coffee", "--json").stdout)
    for words, name in {
        ("app", "list"): "applications",
        ("app", "credentials", made["application_id"]): "credentials",
        ("attempt", "undecided"): "attempts",
        ("attempt", "duplicates"): "duplicates",
        ("keys", "status"): "tables",
        ("operator", "list"): "operators",
        ("user", "list", "--merchant", "Coffee"): "users",
    }.items():
        assert list(json.loads(run(*words, "--json").stdout)) == [name]


def test_error_names_the_kafka_that_does_not_answer(run: Mizan) -> None:
    address = f"127.0.0.1:{find_free_ports(1)[0]}"
    assert f"(Kafka at {address})" in run("lag", KAFKA_BOOTSTRAP_SERVERS=address).stderr


def test_database_that_is_too_old_to_migrate_is_refused(run: Mizan, database: Database) -> None:
    """The message says what can be migrated."""
    with database.transaction() as connection:
        connection.execute("update alembic_version set version_num = '0007'")
    answer = run("migrate")
    assert answer.exit_code == 1
    assert answer.stderr == (
        "Error: The database is at revision 0007. This version can migrate databases from revision 0011 on; "
        "use a new database.\n"
    )


@pytest.mark.parametrize(
    ("url", "code", "told"),
    [
        (None, 78, "DATABASE_URL: Environment variable not set."),
        ("postgresql://mizan:hush@127.0.0.1:{nobody}/x", 1, "Connection refused"),
    ],
)
def test_error_is_one_clear_message(run: Mizan, url: str | None, code: int, told: str) -> None:
    """No traceback, no password; wrong settings have the same exit code as in services."""
    nobody = str(find_free_ports(1)[0])
    answer = run("migrate", DATABASE_URL=url and url.format(nobody=nobody))
    assert answer.exit_code == code
    assert told in answer.stderr
    assert "Traceback" not in answer.stderr
    assert "hush" not in answer.stderr
