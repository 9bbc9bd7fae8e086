"""Becomes another program under another account: `run_as.py UID GID DIRECTORY PROGRAM ARGUMENTS…`.

Enters DIRECTORY while it still may, so that the program can live below directories closed to its account.
"""

import os
import sys


def main(uid: str, gid: str, directory: str, *command: str) -> None:
    os.chdir(directory)
    os.setgroups([])
    os.setgid(int(gid))
    os.setuid(int(uid))
    os.execv(command[0], command)  # noqa: S606 - the point is to become it, without a shell


if __name__ == "__main__":
    main(*sys.argv[1:])
