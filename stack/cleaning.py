"""`python -m stack clean`: removes what stacks have put into STACK_DIR, and nothing else."""

import os
import shutil

from stack.directory_lock import lock_directory
from stack.leftovers import stop_leftovers
from stack.options import Options

MADE_BY_THE_STACK = (
    "bench",
    "bench.json",
    "demo.json",
    "demo.json.new",
    "kafka",
    "logs",
    "metrics",
    "ports.json",
    "postgres",
    "rpc",
    "sandbox.sqlite",
    "sandbox.sqlite-shm",
    "sandbox.sqlite-wal",
    "sandbox_secret",
    "sandbox_secret.new",
    "secret_keys",
    "secret_keys.new",
    "shop.sqlite",
    "shop.sqlite-shm",
    "shop.sqlite-wal",
    "stack.json",
    "stack.json.new",
    "supervisord.conf",
    "supervisord.pid",
    "lock",
)


def clean(options: Options) -> None:
    """Refuses while a stack runs there; other files stay, and with them the directory."""
    directory = options.directory
    if not (directory / "lock").exists():
        return
    with lock_directory(directory, os.getpid()):
        stop_leftovers(directory, print)
        for name in MADE_BY_THE_STACK:
            path = directory / name
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)
    if not any(directory.iterdir()):
        directory.rmdir()
