"""What a single setting may look like; where it may not, env.seal() tells of it, among all that is wrong."""

import environs
from environs import validate


def is_postgres_url(value: str) -> None:
    if not value.startswith(("postgresql://", "postgres://")):
        raise environs.ValidationError("Must be a postgresql:// address.")


def is_empty_or_address(value: str) -> None:
    if value:
        validate.Email()(value)


def is_empty_or_long(value: str) -> None:
    if value and len(value) < 16:
        raise environs.ValidationError("Must have at least 16 characters.")


def is_empty_or_http_url(value: str) -> None:
    if value:
        validate.URL(schemes={"http", "https"}, require_tld=False)(value)


def public_url(env: environs.FileAwareEnv, name: str, default: str) -> str:
    def is_address_to_build_on(value: str) -> None:
        validate.URL(schemes={"http", "https"}, require_tld=False)(value)
        if "?" in value or "#" in value:
            raise environs.ValidationError("Must have no query and no fragment.")

    # None until env.seal() tells what is wrong with it.
    return (env.str(name, default, validate=is_address_to_build_on) or "").rstrip("/")
