"""`python -m stack` runs the embedded stack in the foreground; `python -m stack clean` removes its data."""

import sys

from stack.cleaning import clean
from stack.console import Console
from stack.errors import StackError
from stack.front import run
from stack.options import read_options


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["clean"]):
        print("usage: python -m stack [clean]", file=sys.stderr)
        return 2
    try:
        options = read_options()
        if arguments == ["clean"]:
            clean(options)
            return 0
    except StackError as error:
        Console(colour=False).complain(error)
        return 1
    return run(options)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
