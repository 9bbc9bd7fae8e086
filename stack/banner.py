"""What a person is told once everything runs."""

from collections.abc import Mapping
from pathlib import Path


def banner(addresses: Mapping[str, str], stack_file: Path, logs: Path, seconds: float) -> str:
    rows = {key.removesuffix("_url").replace("_", " "): address for key, address in addresses.items()}
    rows |= {"logs": str(logs), "all this as JSON": str(stack_file)}
    width = max(len(name) for name in rows)
    lines = [f"  {name.ljust(width)}  {value}" for name, value in rows.items()]
    return "\n".join(["", f"  Mizan is ready ({seconds:.1f} s). Ctrl-C stops everything.", "", *lines, ""])
