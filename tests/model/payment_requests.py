"""Requests to the provider and what becomes of them: they arrive, are lost or come late; their processes crash."""

from collections.abc import Iterator

from shared.domain.attempts.states import ProviderAnswer as Answer
from tests.model import payment_transitions as product
from tests.model.payment_state import WINDOW, Action, Attempt, Charge, Method, Request, State, Step

ANSWER_OF_CHARGE = {
    Charge.NONE: Answer.NOT_FOUND,
    Charge.OPEN: Answer.NEEDS_CODE,
    Charge.PAID: Answer.PAID,
    Charge.DECLINED: Answer.DECLINED,
}


def progress_request(state: State, index: int, request: Request) -> Iterator[Step]:
    """The request arrives, is lost, or cannot be sent; its process waits in vain, crashes or settles."""
    attempt, number = state.attempts[index], request.number
    no_response = _no_response(attempt, request)

    def put(name: str, after: Request | None, at_bank: Attempt = attempt, detail: str = "") -> Step:
        return Action(name, index, detail, number), _with_request(state, index, at_bank, request, after)

    if request.on_network and request.age < WINDOW:
        for charge in _outcomes(attempt, request):
            at_bank = write_charge(attempt, charge)
            if (
                not request.is_start
                and charge is Charge.OPEN
                and attempt.method is Method.WALLET_WITHOUT_STATUS
            ):
                at_bank = at_bank._replace(was_code_refused=True)
            arrived = request._replace(on_network=False)
            if not request.awaits_response:
                yield put("arrives at the bank", arrived, at_bank, charge)
                continue
            answer = product.limit_codes(ANSWER_OF_CHARGE[charge], attempt.codes_tried)
            answered = arrived._replace(awaits_response=False, response=answer)
            yield put("arrives at the bank and is answered", answered, at_bank, charge)
            lost = arrived._replace(awaits_response=False, response=no_response)
            yield put("arrives at the bank, the response is lost", lost, at_bank, charge)
    if request.awaits_response:
        waited = request._replace(awaits_response=False, response=no_response)
        yield put("no response in time", waited)
        yield put("is lost, no response", waited._replace(on_network=False))
        not_sent = Answer.DECLINED if request.is_start else Answer.NEEDS_CODE
        yield put(
            "cannot be sent", waited._replace(on_network=False, response=not_sent, is_provider_away=True)
        )
        yield put("its process crashes", request._replace(awaits_response=False))
    elif request.response is not None:
        ended = request._replace(response=None, is_provider_away=False)
        settled = _with_request(state, index, attempt, request, ended)
        yield (
            Action("its process settles", index, request.response, number),
            product.settle_response(settled, index, request),
        )
        yield put("its process crashes before it settles", ended)
    elif request.on_network:
        yield put("is lost", request._replace(on_network=False))


def write_charge(attempt: Attempt, charge: Charge) -> Attempt:
    """Write the outcome into the bank's ledger. A paid charge stays paid."""
    is_new = charge is Charge.PAID and (
        attempt.charge is not Charge.PAID or attempt.method is Method.WALLET_WITHOUT_STATUS
    )
    return attempt._replace(
        charge=Charge.PAID if attempt.charge is Charge.PAID else charge,
        times_charged=min(2, attempt.times_charged + is_new),
        was_declined=attempt.was_declined or charge is Charge.DECLINED,
    )


def _outcomes(attempt: Attempt, request: Request) -> tuple[Charge, ...]:
    """Return what the bank's ledger may say after the request arrives. The attempt's id is the idempotency key."""
    if request.is_start:
        if attempt.charge is not Charge.NONE:
            return (attempt.charge,)
        return (
            (Charge.PAID, Charge.DECLINED, Charge.OPEN)
            if attempt.method is Method.CARD
            else (Charge.OPEN, Charge.DECLINED)
        )
    if attempt.charge is Charge.OPEN or attempt.method is Method.WALLET_WITHOUT_STATUS:
        return (Charge.PAID, Charge.DECLINED, Charge.OPEN)
    return (attempt.charge,)


def _no_response(attempt: Attempt, request: Request) -> Answer:
    """Return what a provider's client reports without a response: starting a wallet's attempt charges nothing."""
    is_harmless = request.is_start and attempt.method is not Method.CARD
    return Answer.DECLINED if is_harmless else Answer.UNKNOWN


def _with_request(
    state: State, index: int, attempt: Attempt, before: Request, after: Request | None
) -> State:
    requests = [after if request is before else request for request in attempt.in_flight]
    in_flight = tuple(
        one for one in requests if one and (one.on_network or one.awaits_response or one.response)
    )
    return product.replace_attempt(state, index, attempt._replace(in_flight=in_flight))


def grow_older(attempt: Attempt) -> Attempt:
    """A request that is on the network for the whole window no longer arrives."""
    age = None if attempt.age is None else min(WINDOW, attempt.age + 1)
    requests = []
    for request in attempt.in_flight:
        older = request._replace(age=min(WINDOW, request.age + 1))
        if older.age == WINDOW and older.on_network:
            older = older._replace(on_network=False)
            if older.awaits_response:
                older = older._replace(awaits_response=False, response=_no_response(attempt, older))
        if older.on_network or older.awaits_response or older.response:
            requests.append(older)
    return attempt._replace(age=age, in_flight=tuple(requests))
