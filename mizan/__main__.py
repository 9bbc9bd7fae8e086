"""`mizan`: the group of all commands, and `mizan migrate`."""

import click

from mizan.app import app_group
from mizan.app.webhooks import resend_command
from mizan.attempt import attempt_group
from mizan.command_context import startup_settings
from mizan.dead import dead_group
from mizan.delivery import delivery_group
from mizan.demo import demo_command, remove_demo_command
from mizan.doctor import doctor_command
from mizan.intent import intent_group
from mizan.keys import keys_group
from mizan.lag import lag_command
from mizan.listen import listen_command, restore_command
from mizan.operator import operator_group
from mizan.output import CommandGroup
from mizan.pay import pay_command
from mizan.reconciliation import audit_command
from mizan.roles import roles_command
from mizan.search import search_command
from mizan.signature import sign_command, verify_command
from mizan.topics import topics_command
from mizan.trigger import trigger_command
from mizan.user import user_group
from shared import VERSION
from shared.platform.migrations.runner import migrate
from shared.platform.settings import Environment


@click.command("migrate")
def migrate_command() -> None:
    """Bring the database's schema up to date. Safe to repeat, and to run several times at once."""
    with startup_settings(uses_kafka=False, as_owner=True) as settings:
        is_production = settings.environment is Environment.PRODUCTION
        revision = migrate(settings.database.url, is_production=is_production)
        click.echo(f"schema is at revision {revision}")


@click.group(cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(VERSION, message="mizan %(version)s")
def main() -> None:
    """Operate Mizan. It finds the database and Kafka through DATABASE_URL and KAFKA_BOOTSTRAP_SERVERS, or through the
    stack.json of a running `make run`: in STACK_DIR or, without it, in .run of the current directory or the project."""


main.add_command(app_group)
main.add_command(attempt_group)
main.add_command(audit_command)
main.add_command(dead_group)
main.add_command(delivery_group)
main.add_command(demo_command)
main.add_command(doctor_command)
main.add_command(intent_group)
main.add_command(keys_group)
main.add_command(lag_command)
main.add_command(listen_command)
main.add_command(migrate_command)
main.add_command(operator_group)
main.add_command(pay_command)
main.add_command(remove_demo_command)
main.add_command(resend_command)
main.add_command(restore_command)
main.add_command(roles_command)
main.add_command(search_command)
main.add_command(sign_command)
main.add_command(topics_command)
main.add_command(trigger_command)
main.add_command(user_group)
main.add_command(verify_command)

if __name__ == "__main__":
    main(prog_name="mizan")
