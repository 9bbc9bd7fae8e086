"""What a person is told once everything runs."""

from collections.abc import Mapping
from pathlib import Path

from stack.demo import Demo


def banner(addresses: Mapping[str, str], demo: Demo, stack_file: Path, logs: Path, seconds: float) -> str:
    rows = {key.removesuffix("_url").replace("_", " "): address for key, address in addresses.items()}
    rows |= {"logs": str(logs), "all this as JSON": str(stack_file)}
    width = max(len(name) for name in rows)
    lines = [f"  {name.ljust(width)}  {value}" for name, value in rows.items()]
    first_call = _first_call(addresses, demo) if demo else []
    title = f"  Mizan is ready ({seconds:.1f} s). Ctrl-C stops everything."
    return "\n".join(["", title, "", *lines, "", *first_call])


def _first_call(addresses: Mapping[str, str], demo: Demo) -> list[str]:
    return [
        "  Create a payment intent of 25 dinar with the demo application:",
        "",
        f"    curl {addresses['api_base_url']}/payment-intents \\",
        f"      -H 'X-API-Key: {demo['api_key']}' \\",
        f"      -H 'Authorization: Bearer {demo['access_token']}' \\",
        """      -d '{"merchant_reference": "order-1", "amount": 25000, "currency": "LYD"}'""",
        "",
        "  Open the checkout_url of its answer, and pay with card 4242 4242 4242 4242 (?lang=en for English).",
        "",
        f"  See it in the dashboard: sign in at {addresses['dashboard_url']}",
        f"    with {demo['owner_email']} and the password {demo['owner_password']}",
        f"  Watch it all in the monitor: sign in at {addresses['monitor_url']}",
        f"    with {demo['operator_email']} and the password {demo['operator_password']}",
        "",
    ]
