"""`mizan sign` and `mizan verify`: the signature of a webhook body (§6.4). They need no database and no stack."""

import hmac
import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO, TypeVar

import click

from mizan.output import json_option
from shared.domain.deliveries.signing import SIGNATURE_HEADER, sign_body, signing_key
from shared.platform.tokens import WEBHOOK_SECRET_PREFIX

_Command = TypeVar("_Command", bound=Callable[..., None])

_body_argument = click.argument("body_file", metavar="[FILE]", type=click.File("rb"), default="-")


def _secret_options(command: _Command) -> _Command:
    """Add --secret and --secret-file, each of which may be given several times."""
    from_file = click.option(
        "--secret-file",
        "secret_files",
        multiple=True,
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="A file with the secret, so that it is not in the shell's history.",
    )
    given = click.option("--secret", "secrets", multiple=True, help="The webhook secret, with its whsec_.")
    return given(from_file(command))


@click.command("sign")
@_secret_options
@_body_argument
@json_option
def sign_command(
    secrets: tuple[str, ...], secret_files: tuple[Path, ...], body_file: BinaryIO, as_json: bool
) -> None:
    """Print the signature of a webhook body, as Mizan sends it. The body is read from FILE or standard input, and every
    byte counts, also a line break at the end."""
    read = _read_secrets(secrets, secret_files)
    if len(read) > 1:
        raise click.UsageError("A webhook is signed with one secret: give only one.")
    signature = sign_body(body_file.read(), signing_key(read[0]))
    click.echo(json.dumps({"header": SIGNATURE_HEADER, "signature": signature}) if as_json else signature)


@click.command("verify")
@_secret_options
@click.option("--signature", required=True, help=f"The value of the header {SIGNATURE_HEADER}.")
@_body_argument
@json_option
def verify_command(
    secrets: tuple[str, ...],
    secret_files: tuple[Path, ...],
    signature: str,
    body_file: BinaryIO,
    as_json: bool,
) -> None:
    """Verify the signature of a webhook body from FILE or standard input. Exit code 0 only if it is valid.

    Give the old and the new secret during a roll: a signature with either is valid.
    """
    read = _read_secrets(secrets, secret_files)
    is_valid = is_signed(body_file.read(), signature, read)
    if as_json:
        click.echo(json.dumps({"valid": is_valid}))
    elif is_valid:
        click.echo("the signature is valid")
    else:
        click.echo(
            "the signature is not valid: another body, another secret, or not as it was sent", err=True
        )
    if not is_valid:
        sys.exit(1)


def is_signed(body: bytes, signature: str, secrets: Sequence[str]) -> bool:
    """Return whether the body is signed with one of the secrets. Takes the same time whatever the signature is."""
    given = signature.encode(errors="replace")  # compare_digest takes only ASCII as text
    expected = [sign_body(body, signing_key(secret)).encode() for secret in secrets]
    return any([hmac.compare_digest(one, given) for one in expected])  # noqa: C419  compares with all secrets


def _read_secrets(given: Sequence[str], files: Sequence[Path]) -> list[str]:
    """Return all secrets. Raises UsageError, without a secret in it, if there is none or one is no webhook secret."""
    secrets = [*(text.strip() for text in given), *map(_read_secret, files)]
    if not secrets:
        raise click.UsageError("Give the webhook secret with --secret or --secret-file.")
    if not all(secret.startswith(WEBHOOK_SECRET_PREFIX) for secret in secrets):
        raise click.UsageError(
            f"A webhook secret starts with {WEBHOOK_SECRET_PREFIX}, which is a part of the key."
        )
    return secrets


def _read_secret(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        raise click.UsageError(f"{path} cannot be read, or is not text.") from None
