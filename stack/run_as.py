"""Runs a program under another account: `run_as.py UID GID DIRECTORY PROGRAM ARGUMENTS…`.

Enters DIRECTORY before it switches the account, so that the program works below directories closed to that account.
"""

import os
import sys


def main(uid: str, gid: str, directory: str, *command: str) -> None:
    os.chdir(directory)
    os.setgroups([])
    os.setgid(int(gid))
    os.setuid(int(uid))
    os.execv(command[0], command)  # noqa: S606 - replaces this process, without a shell


if __name__ == "__main__":
    main(*sys.argv[1:])
