"""A service's JSON log line as a person likes to read it; other lines as they are."""

import json


def readable(line: str) -> str:
    if not line.startswith("{"):
        return line
    try:
        fields = json.loads(line)
    except ValueError:
        return line
    if not isinstance(fields, dict) or "event" not in fields:
        return line
    # The process's name already stands before the line.
    fields.pop("service", None)
    moment, level = str(fields.pop("timestamp", "")), str(fields.pop("level", ""))
    words = [moment[11:23], level.upper().ljust(7), str(fields.pop("event"))]
    exception = fields.pop("exception", None)
    words += [f"{name}={value}" for name, value in fields.items()]
    return " ".join(words) + (f"\n{exception}" if exception else "")
