"""`mizan`: the group of all commands."""

from importlib import import_module

import click

from mizan.output import CommandGroup
from shared import VERSION

_COMMANDS = {
    "app": ("mizan.app", "app_group"),
    "attempt": ("mizan.attempt", "attempt_group"),
    "audit": ("mizan.reconciliation", "audit_command"),
    "dead": ("mizan.dead", "dead_group"),
    "delivery": ("mizan.delivery", "delivery_group"),
    "demo": ("mizan.demo", "demo_command"),
    "doctor": ("mizan.doctor", "doctor_command"),
    "intent": ("mizan.intent", "intent_group"),
    "keys": ("mizan.keys", "keys_group"),
    "lag": ("mizan.lag", "lag_command"),
    "listen": ("mizan.listen", "listen_command"),
    "migrate": ("mizan.migrate", "migrate_command"),
    "operator": ("mizan.operator", "operator_group"),
    "pay": ("mizan.pay", "pay_command"),
    "remove-demo": ("mizan.demo", "remove_demo_command"),
    "resend": ("mizan.app.webhooks", "resend_command"),
    "restore-webhook-url": ("mizan.listen", "restore_command"),
    "roles": ("mizan.roles", "roles_command"),
    "search": ("mizan.search", "search_command"),
    "sign": ("mizan.signature", "sign_command"),
    "topics": ("mizan.topics", "topics_command"),
    "trigger": ("mizan.trigger", "trigger_command"),
    "user": ("mizan.user", "user_group"),
    "verify": ("mizan.signature", "verify_command"),
}
"""Each command's module, and its name there."""


class _MainGroup(CommandGroup):
    """Imports a command when it is needed. To import all of them takes longer than most commands."""

    def list_commands(self, _context: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, _context: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS:
            return None
        module, attribute = _COMMANDS[name]
        command: click.Command = getattr(import_module(module), attribute)
        return command


@click.group(cls=_MainGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, message="mizan %(version)s")
def main() -> None:
    """Operate Mizan. It finds the database and Kafka through DATABASE_URL and KAFKA_BOOTSTRAP_SERVERS, or through the
    stack.json of a running `make run`: in STACK_DIR or, without it, in .run of the current directory or the project."""


if __name__ == "__main__":
    main(prog_name="mizan")
