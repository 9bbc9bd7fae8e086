"""The options of the stack from the environment."""

from pathlib import Path

import pytest

from stack.errors import StackError
from stack.options import cache_directory, read_options

NAMES = (
    "STACK_DIR PORT_BASE BROKERS DATABASE_URL KAFKA_BOOTSTRAP_SERVERS MIZAN_CACHE_DIR XDG_CACHE_HOME".split()  # noqa: SIM905 - reads as a list
)


@pytest.fixture(autouse=True)
def empty_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)


def test_defaults_of_the_options(tmp_path: Path) -> None:
    """Nothing set: .run, ports from 8000, one broker, both engines embedded."""
    options = read_options()
    assert options.directory == tmp_path / ".run"
    assert (options.port_base, options.brokers) == (8000, 1)
    assert options.database_url is None
    assert options.kafka_bootstrap_servers is None
    assert options.cache == Path.home() / ".cache" / "mizan"


def test_one_error_names_all_invalid_options(monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = {
        "PORT_BASE": "80",
        "BROKERS": "2",
        "DATABASE_URL": "mysql://somewhere",
        "KAFKA_BOOTSTRAP_SERVERS": "no-port",
        "STACK_DIR": "a,b",
        "MIZAN_CACHE_DIR": "a:b",
        "WEBHOOK_RETRY_DELAYS": "5,5",  # a setting of a service
        "SMTP_PASSWORD_FILE": "/nowhere",
    }
    for name, value in wrong.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(StackError) as caught:
        read_options()
    assert [name for name in wrong if name not in caught.value.problem] == []


def test_empty_variable_counts_as_not_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A Makefile passes empty variables."""
    for name in ("STACK_DIR", "DATABASE_URL", "KAFKA_BOOTSTRAP_SERVERS", "MIZAN_CACHE_DIR"):
        monkeypatch.setenv(name, "")
    options = read_options()
    assert options.directory == tmp_path / ".run"
    assert options.database_url is None
    assert options.kafka_bootstrap_servers is None


def test_cache_directory_can_be_chosen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """MIZAN_CACHE_DIR wins over XDG_CACHE_HOME."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_directory() == tmp_path / "xdg" / "mizan"
    monkeypatch.setenv("MIZAN_CACHE_DIR", str(tmp_path / "own"))
    assert cache_directory() == tmp_path / "own"


def test_database_password_is_not_in_the_repr_of_the_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://mizan:hunter2@db/mizan")
    assert "hunter2" not in repr(read_options())


@pytest.mark.parametrize("name", ["a,b", "a;b", "a:b", "100%", "a#b", 'a"b', "a\nb"])
def test_paths_with_unusable_characters_are_refused(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """They would break the settings files of Kafka, Java or supervisord."""
    monkeypatch.setenv("STACK_DIR", name)
    with pytest.raises(StackError, match="STACK_DIR"):
        read_options()
