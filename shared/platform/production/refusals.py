"""All that keeps a process from starting, in one list: settings that are wrong, and in production what it refuses."""

from shared.platform.production.demo_data import look_for_demo_data
from shared.platform.production.rules import setting_problems
from shared.platform.settings import Environment, ParsedSettings, Problems

_NEEDED_FOR_A_LOOK = {"DATABASE_URL", "DATABASE_CONNECT_TIMEOUT", "DATABASE_STATEMENT_TIMEOUT"}


def refusals(reading: ParsedSettings) -> Problems:
    """Empty: start. In production this asks the database, where its address can be used."""
    settings = reading.settings
    problems = {**setting_problems(settings), **reading.problems}
    if settings.environment is Environment.PRODUCTION and not reading.problems.keys() & _NEEDED_FOR_A_LOOK:
        found = look_for_demo_data(settings.database)
        if found:
            problems["demo data"] = [found]
    return problems
