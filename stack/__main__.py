"""`python -m stack` runs the embedded stack in the foreground; `python -m stack clean` removes its data."""

import sys

from stack.errors import StackError
from stack.launcher import run
from stack.options import read_options
from stack.output import Console
from stack.state_directory import clean


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
        Console(colour=False).print_error(error)
        return 1
    return run(options)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
