"""What a person is told once everything runs."""

from collections.abc import Mapping
from pathlib import Path

from stack.demo import Demo


def banner(addresses: Mapping[str, str], demo: Demo, stack_file: Path, logs: Path, seconds: float) -> str:
    rows = {key.removesuffix("_url").replace("_", " "): address for key, address in addresses.items()}
    rows |= {"logs": str(logs), "all this as JSON": str(stack_file)}
    width = max(len(name) for name in rows)
    lines = [f"  {name.ljust(width)}  {value}" for name, value in rows.items()]
    title = f"  Mizan is ready ({seconds:.1f} s). Ctrl-C stops everything."
    return "\n".join(["", title, "", *lines, "", *(_what_to_click(addresses, demo) if demo else [])])


def _what_to_click(addresses: Mapping[str, str], demo: Demo) -> list[str]:
    return [
        f"  First, buy a coffee: open {addresses['shop_url']} (with ?lang=en it is English)",
        "    and pay with card 4242 4242 4242 4242, any date ahead, any security code.",
        f"  See the payment and its webhook in the dashboard: sign in at {addresses['dashboard_url']}",
        f"    with {demo['owner_email']} and the password {demo['owner_password']}",
        f"  Watch it all in the monitor: sign in at {addresses['monitor_url']}",
        f"    with {demo['operator_email']} and the password {demo['operator_password']}",
        "",
        "  Or call the API yourself, and open the checkout_url of its answer:",
        "",
        f"    curl {addresses['api_base_url']}/payment-intents \\",
        f"      -H 'X-API-Key: {demo['api_key']}' \\",
        f"      -H 'Authorization: Bearer {demo['access_token']}' \\",
        """      -d '{"merchant_reference": "order-1", "amount": 25000, "currency": "LYD"}'""",
        "",
    ]
