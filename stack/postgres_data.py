"""The data directory of PostgreSQL, and the account that owns it.

PostgreSQL refuses to run as root, so root runs it under another account.
"""

import os
import pwd
import secrets
import shutil
import stat
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from stack.errors import StackError

# PostgreSQL cuts paths at 1024 bytes and appends its own file names.
MAX_PATH_LENGTH = 900

CANDIDATES = ("postgres", "nobody")
CURRENT_DIRECTORY = Path("/proc/self/cwd")


@dataclass(frozen=True)
class Account:
    """An account other than the one that runs the stack."""

    name: str
    uid: int
    gid: int

    def command(self, program: Path, directory: Path, arguments: list[str]) -> list[str]:
        """Return a command that runs `program` as this account, with `directory` as its working directory."""
        wrapper = str(Path(__file__).with_name("run_as.py"))
        become = [sys.executable, "-I", "-S", wrapper, str(self.uid), str(self.gid), str(directory)]
        return [*become, str(program), *arguments]

    def own(self, path: Path) -> None:
        os.chown(path, self.uid, self.gid)


def choose_account(data: Path) -> Account | None:
    """Return the account for PostgreSQL, or None for our own. Existing data keeps its owner.

    Raises StackError if we are root and there is no other account.
    """
    if os.geteuid() != 0:
        return None
    if data.exists() and data.stat().st_uid != 0:
        return _account(pwd.getpwuid(data.stat().st_uid))
    for name in CANDIDATES:
        try:
            return _account(pwd.getpwnam(name))
        except KeyError:
            continue
    raise StackError(
        "PostgreSQL refuses to run as root, and there is no other account for it.",
        f"Create one of the accounts {CANDIDATES}, or run as a user other than root.",
    )


def _account(entry: pwd.struct_passwd) -> Account:
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid)


def allow_traversal(path: Path) -> list[Path]:
    """Let other accounts pass through the directories above `path`. Return the directories that were changed.

    Only a missing search bit is added, so other accounts cannot list the directories. Raises StackError if it fails.
    """
    opened = []
    for directory in path.resolve().parents:
        mode = directory.stat().st_mode
        if mode & stat.S_IXOTH:
            continue
        try:
            directory.chmod(stat.S_IMODE(mode) | stat.S_IXOTH)
        except OSError as error:
            raise StackError(
                f"PostgreSQL cannot run as root, and no other account may pass through {directory}.",
                f"Run `chmod o+x {directory}`, or run as a user other than root.",
            ) from error
        opened.append(directory)
    return opened


USER = "mizan"
DATABASE = "mizan"
INITDB_OPTIONS = (
    f"--username={USER}",
    "--pwfile=../password",
    "--auth=scram-sha-256",
    "--encoding=UTF8",
    "--no-locale",
    "--locale-provider=builtin",
    "--builtin-locale=C.UTF-8",
)


@dataclass(frozen=True)
class DataDirectory:
    """The data of one server, below `home`, which also contains the password."""

    home: Path
    programs: Path
    version: int
    account: Account | None

    @property
    def path(self) -> Path:
        return self.home / "data"

    def password(self) -> str:
        return self._password_file.read_text().strip()

    @property
    def _password_file(self) -> Path:
        return self.home / "password"

    def server_command(self, options: list[str]) -> list[str]:
        return self._command("postgres", ["-D", self._path_for_account(self.path), *options], self.path)

    def _command(self, program: str, arguments: list[str], data: Path) -> list[str]:
        path = self.programs / program
        return self.account.command(path, data, arguments) if self.account else [str(path), *arguments]

    def _path_for_account(self, data: Path) -> str:
        """Return the path for a program that runs in `data`. Its account may not be able to use the real path."""
        return str(CURRENT_DIRECTORY if self.account and CURRENT_DIRECTORY.exists() else data)

    def prepare(self) -> list[str]:
        """Create the data directory, completely or not at all, if there is none. Return notes for the user.

        Raises StackError if the path is too long, or the data belongs to another version of PostgreSQL.
        """
        if len(os.fsencode(self.path)) > MAX_PATH_LENGTH:
            raise StackError(
                f"{self.home} is too deep for PostgreSQL: its path may have at most {MAX_PATH_LENGTH} bytes.",
                "Choose a shorter one with STACK_DIR=/some/directory.",
            )
        self.home.mkdir(parents=True, exist_ok=True)
        notes = self._grant_access()
        if self.path.exists():
            self._check_version()
        else:
            self._make()
        return notes

    def _grant_access(self) -> list[str]:
        if self.account is None:
            return []
        self.home.chmod(0o755)
        opened = allow_traversal(self.programs / "postgres")
        if not CURRENT_DIRECTORY.exists():
            opened += allow_traversal(self.path)
        return [
            f"Allowed the account {self.account.name} to pass through {path} (chmod o+x)." for path in opened
        ]

    def _check_version(self) -> None:
        try:
            found = (self.path / "PG_VERSION").read_text().strip()
        except FileNotFoundError:
            found = "none"
        if found != str(self.version):
            raise StackError(
                f"{self.path} holds data of PostgreSQL version {found}; this is version {self.version}.",
                "Use another STACK_DIR, or move that directory away to start with an empty database.",
            )

    def _make(self) -> None:
        new = self.home / "data.new"
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(mode=0o700)
        self._write_password()
        if self.account is not None:
            self.account.own(new)
            self.account.own(self._password_file)
        here = self._path_for_account(new)
        self._run(new, "initdb", ["-D", here, *INITDB_OPTIONS])
        self._run(new, "postgres", ["--single", "-D", here, "postgres"], f"create database {DATABASE}")
        new.rename(self.path)

    def _write_password(self) -> None:
        self._password_file.unlink(missing_ok=True)
        self._password_file.touch(mode=0o600)
        self._password_file.write_text(secrets.token_urlsafe(24) + "\n")

    def _run(self, new: Path, program: str, arguments: list[str], statement: str = "") -> None:
        done = subprocess.run(
            self._command(program, arguments, new),
            input=statement, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
            cwd=new, env={"LC_ALL": "C"},
        )  # fmt: skip
        if done.returncode != 0:
            raise StackError(
                f"PostgreSQL's data directory could not be created below {self.home}:\n{done.stdout.strip()}",
                "If the directory is the problem, name another one with STACK_DIR=/some/directory.",
            )
