"""The error that the stack shows to its user."""


class StackError(Exception):
    """A problem that the user can fix. It is printed as two lines, problem and remedy, without a traceback."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(f"{problem}\n{remedy}")
        self.problem = problem
        self.remedy = remedy
