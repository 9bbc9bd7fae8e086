"""What can go wrong with the stack, said in two sentences: what happened, and what to do about it."""


class StackError(Exception):
    """A problem a person can do something about. Printed as two lines, without a traceback."""

    def __init__(self, problem: str, remedy: str) -> None:
        super().__init__(f"{problem}\n{remedy}")
        self.problem = problem
        self.remedy = remedy
