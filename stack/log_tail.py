"""Reading on in a log file while it grows and is rotated."""

import os
from pathlib import Path
from typing import BinaryIO

LONGEST_READ = 256 * 1024


class LogTail:
    """New whole lines of one file, from where it ended when the tail was made."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._rest = b""
        self._file = self._open()
        if self._file is not None:
            self._file.seek(0, os.SEEK_END)

    def new_lines(self) -> list[str]:
        self._file = self._file or self._open()
        if self._file is None:
            return []
        content = self._file.read(LONGEST_READ)
        if not content and self._was_rotated(self._file):
            self.close()
        *lines, self._rest = (self._rest + content).split(b"\n")
        return [line.decode(errors="replace").rstrip("\r") for line in lines]

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open(self) -> BinaryIO | None:
        try:
            return self._path.open("rb")
        except FileNotFoundError:
            return None

    def _was_rotated(self, file: BinaryIO) -> bool:
        try:
            now = self._path.stat()
        except FileNotFoundError:
            return False
        return now.st_ino != os.fstat(file.fileno()).st_ino or now.st_size < file.tell()
