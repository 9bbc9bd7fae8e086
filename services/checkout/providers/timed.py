"""A provider whose answers are timed and counted, whichever it is."""

from collections.abc import Callable
from time import perf_counter

from services.checkout.metrics import CALLS
from services.checkout.providers.port import (
    Card,
    CodeEntered,
    Payment,
    Provider,
    ProviderAnswer,
    Reason,
    Wallet,
)
from shared.domain.attempts.states import AttemptState
from shared.domain.payment_methods import PaymentMethod


class Timed:
    def __init__(self, provider: Provider) -> None:
        self.name = provider.name
        self._provider = provider

    def beginning(self, method: PaymentMethod) -> AttemptState:
        return self._provider.beginning(method)

    def takes(self, amount: int) -> bool:
        return self._provider.takes(amount)

    def start(self, payment: Payment, details: Card | Wallet | None) -> ProviderAnswer:
        return self._timed("start", lambda: self._provider.start(payment, details))

    def confirm(self, payment: Payment, entered: CodeEntered) -> ProviderAnswer:
        return self._timed("confirm", lambda: self._provider.confirm(payment, entered))

    def status(self, payment: Payment) -> ProviderAnswer:
        return self._timed("status", lambda: self._provider.status(payment))

    def _timed(self, verb: str, ask: Callable[[], ProviderAnswer]) -> ProviderAnswer:
        began = perf_counter()
        answer = ask()
        is_away = answer.outcome.reason == Reason.PROVIDER_AWAY
        said = "unreachable" if is_away else answer.outcome.answer
        CALLS.labels(self.name, verb, said).observe(perf_counter() - began)
        return answer
