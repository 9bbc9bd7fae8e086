"""What can be wrong with a request about applications."""

from uuid import UUID

from shared.platform.errors import RefusedError


class ApplicationNotFoundError(RefusedError):
    def __init__(self, application_id: UUID) -> None:
        super().__init__(f"there is no application {application_id}")


class ApplicationExistsError(RefusedError):
    """What was to be made with this id has been made already."""

    def __init__(self, application_id: UUID) -> None:
        super().__init__(f"there is an application {application_id} already")


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
    """Empty, too long, or with characters that no name has."""


class CredentialNotFoundError(RefusedError):
    def __init__(self) -> None:
        super().__init__("the application has no credential with this id or prefix")


class CredentialExistsError(RefusedError):
    """What was to be issued with this id has been issued already, and cannot be shown again."""

    def __init__(self, credential_id: UUID) -> None:
        super().__init__(f"there is a credential {credential_id} already")


class CredentialAmbiguousError(RefusedError):
    """Several credentials match what was given; the text lists them."""


class WebhookSecretRolledError(RefusedError):
    """Somebody was faster: the version that was to be replaced is not the current one any more."""

    def __init__(self, version: int) -> None:
        super().__init__(f"the webhook secret was rolled already; its version is {version} now")


class WebhookSecretNotFoundError(RefusedError):
    def __init__(self, application_id: UUID, version: int) -> None:
        super().__init__(f"application {application_id} has no webhook secret of version {version}")
