"""Under which account PostgreSQL runs: it refuses to be root, so root lends it another account."""

import os
import pwd
import stat
import sys
from dataclasses import dataclass
from pathlib import Path

from stack.errors import StackError

CANDIDATES = ("postgres", "nobody")
OWN_DIRECTORY = Path("/proc/self/cwd")


@dataclass(frozen=True)
class Account:
    """An account other than the one that runs the stack."""

    name: str
    uid: int
    gid: int

    def command(self, program: Path, directory: Path, arguments: list[str]) -> list[str]:
        """Runs `program` as this account, with `directory` as its working directory."""
        wrapper = str(Path(__file__).with_name("as_account.py"))
        become = [sys.executable, "-I", "-S", wrapper, str(self.uid), str(self.gid), str(directory)]
        return [*become, str(program), *arguments]

    def own(self, path: Path) -> None:
        os.chown(path, self.uid, self.gid)


def account_for(data: Path) -> Account | None:
    """The account to run PostgreSQL under; None means our own. Existing data stays with its owner."""
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
        "PostgreSQL refuses to run as root, and there is no account to lend it.",
        f"Make one of the accounts {CANDIDATES}, or run as a user other than root.",
    )


def _account(entry: pwd.struct_passwd) -> Account:
    return Account(entry.pw_name, entry.pw_uid, entry.pw_gid)


def open_the_way(path: Path) -> list[Path]:
    """Let other accounts pass through the directories above `path`; returns those that were closed to them.

    Only the search bit is added, and only where it is missing: names below stay unlistable.
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
