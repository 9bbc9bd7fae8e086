"""`mizan roles`: prepares the roles of PostgreSQL, and gives an earlier installation's database to its owner."""

import json
from pathlib import Path

import click
import psycopg

from mizan.command_context import report_errors
from shared.platform.database.roles import (
    OWNER,
    ROLE_NAMES,
    leave_earlier_owners,
    own_database,
    prepare_roles,
)
from shared.platform.settings import read_admin_url

_CONNECT_TIMEOUT_S = 10


@click.command("roles")
@click.option(
    "--passwords-file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="A JSON object with the password of each role. Without it, passwords stay as they are.",
)
@click.option(
    "--finish",
    is_flag=True,
    help="After an upgrade, once no service of the earlier version runs: end the rights that its role has kept.",
)
@click.option("--optional", is_flag=True, help="Do nothing if no administrator's connection is given.")
def roles_command(passwords_file: Path | None, finish: bool, optional: bool) -> None:
    """Prepare the login roles of PostgreSQL.

    Creates the owner of the database and a role for each service, and sets their passwords and time limits.
    DATABASE_ADMIN_URL (or DATABASE_ADMIN_URL_FILE) is the connection of an administrator to Mizan's database.
    Everything that Mizan has in that database moves to the owner role. Run `mizan migrate` afterwards. Safe to
    repeat, and while services run.
    """
    with report_errors():
        url = read_admin_url(optional=optional)
        if not url:
            click.echo("no administrator's connection is given: the roles stay as they are")
            return
        passwords = {} if passwords_file is None else _read_passwords(passwords_file)
        with psycopg.connect(url, autocommit=True, connect_timeout=_CONNECT_TIMEOUT_S) as connection:
            prepare_roles(connection, passwords)
            click.echo(f"prepared the roles {', '.join(ROLE_NAMES)}")
            if moved := own_database(connection):
                click.echo(f"{OWNER} now owns {len(moved)} more objects, among them {moved[0]}")
            if finish:
                members = leave_earlier_owners(connection)
                click.echo(f"ended memberships of: {', '.join(members) or 'nobody'}")


def _read_passwords(path: Path) -> dict[str, str]:
    """Return the passwords. Raises click.ClickException if the file is not as expected; no message has a password."""
    try:
        content = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        raise click.ClickException(f"{path} cannot be read as JSON: {type(error).__name__}") from None
    if not isinstance(content, dict) or not all(
        isinstance(password, str) and password for password in content.values()
    ):
        raise click.ClickException(
            f"{path} must contain a JSON object: the name of each role and its password"
        )
    if unknown := sorted(content.keys() - set(ROLE_NAMES)):
        raise click.ClickException(f"{path} names unknown roles: {', '.join(unknown)}")
    return content
