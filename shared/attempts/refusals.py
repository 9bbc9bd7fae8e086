"""Why a customer cannot pay now; each is named after what to show them."""


class AttemptRefusedError(Exception):
    """The customer cannot pay like this now; nothing was changed."""


class AlreadyPaidError(AttemptRefusedError):
    """Show the receipt."""


class IntentExpiredError(AttemptRefusedError):
    """Show the way back to the merchant: its time is over."""


class AttemptUnderWayError(AttemptRefusedError):
    """Show that the payment is being confirmed: another attempt may be charging at this moment."""


class RedirectOpenError(AttemptRefusedError):
    """Ask the customer first: they may be paying on a provider's page."""


class NotAwaitingCodeError(AttemptRefusedError):
    """Show how things stand: this attempt asks for no code, or no longer does."""
