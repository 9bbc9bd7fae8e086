"""What can be wrong with a request about applications."""

from uuid import UUID


class RefusedError(Exception):
    """It cannot be done as asked. The text is for the person who asked, and holds no secret."""


class ApplicationNotFoundError(RefusedError):
    def __init__(self, application_id: UUID) -> None:
        super().__init__(f"there is no application {application_id}")


class MerchantNotFoundError(RefusedError):
    def __init__(self, merchant_id: UUID) -> None:
        super().__init__(f"there is no merchant {merchant_id}")


class MerchantAmbiguousError(RefusedError):
    def __init__(self, merchant_ids: list[UUID]) -> None:
        super().__init__(
            f"{len(merchant_ids)} merchants have this name; give the id of one: {', '.join(map(str, merchant_ids))}"
        )


class NameNotAllowedError(RefusedError):
    """Empty, too long, or with characters that no name has."""


class CredentialNotFoundError(RefusedError):
    def __init__(self) -> None:
        super().__init__("the application has no credential with this id or prefix")


class CredentialAmbiguousError(RefusedError):
    """Several credentials match what was given; the text lists them."""


class WebhookSecretNotFoundError(RefusedError):
    def __init__(self, application_id: UUID, version: int) -> None:
        super().__init__(f"application {application_id} has no webhook secret of version {version}")
