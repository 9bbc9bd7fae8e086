"""Errors of requests about applications, merchants and their credentials."""

from uuid import UUID

from shared.platform.errors import RefusedError


class ApplicationNotFoundError(RefusedError):
    def __init__(self, application_id: UUID) -> None:
        super().__init__(f"there is no application {application_id}")


class ApplicationExistsError(RefusedError):
    """An application with this id was created before."""

    def __init__(self, application_id: UUID) -> None:
        super().__init__(f"there is already an application {application_id}")


class NoMethodsError(RefusedError):
    def __init__(self) -> None:
        super().__init__("an application needs at least one payment method")


class MerchantNotFoundError(RefusedError):
    def __init__(self, merchant: UUID | str) -> None:
        super().__init__(f"there is no merchant {merchant}")


class MerchantAmbiguousError(RefusedError):
    def __init__(self, merchant_ids: list[UUID]) -> None:
        super().__init__(
            f"{len(merchant_ids)} merchants have this name; give the id of one: {', '.join(map(str, merchant_ids))}"
        )


class InvalidNameError(RefusedError):
    """The name is empty, too long, or has forbidden characters."""


class InvalidPublicNameError(RefusedError):
    """The name for customers is too long, unreadable, or has forbidden characters."""


class CredentialNotFoundError(RefusedError):
    def __init__(self) -> None:
        super().__init__("the application has no credential with this id or prefix")


class CredentialExistsError(RefusedError):
    """A credential with this id was issued before, and cannot be shown again."""

    def __init__(self, credential_id: UUID) -> None:
        super().__init__(f"there is already a credential {credential_id}")


class CredentialAmbiguousError(RefusedError):
    """Several credentials match what was given; the text lists them."""


class WebhookSecretRolledError(RefusedError):
    """The version to be replaced is no longer the current one: somebody else has rolled the secret."""

    def __init__(self, version: int) -> None:
        super().__init__(f"the webhook secret was already rolled; its version is now {version}")


class WebhookSecretNotFoundError(RefusedError):
    def __init__(self, application_id: UUID, version: int) -> None:
        super().__init__(f"application {application_id} has no webhook secret of version {version}")
