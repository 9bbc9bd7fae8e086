"""Operators record lost answers as lost, do such a change again, and leave no webhooks paused."""

from collections.abc import Callable
from pathlib import Path
from random import Random
from time import monotonic
from typing import Any, cast
from uuid import uuid4

import pytest
from cryptography.fernet import Fernet

from chaos.history import History, SecretRolled, WebhooksPaused, read_history
from chaos.load import operators
from chaos.load.operators import Operators
from chaos.load.receivers import Receiver, Receivers
from chaos.load.recorder import Recorder
from chaos.load.transactions import LoadError, Transactions
from shared.domain.applications.registry import CreatedApplication
from shared.platform.encryption import SecretBox
from tests.event_loops import run_async


class _Answers(Transactions):
    """Transactions that do nothing, with the answers of the test. The last one is repeated; None is a lost one."""

    def __init__(self, *answers: object) -> None:
        super().__init__("")
        made = CreatedApplication(
            id=uuid4(), merchant_id=uuid4(), api_key="k", access_token="t", webhook_secret="s"
        )
        self._answers: list[object] = [made, *answers]

    async def run(self, action: Callable[[Any], Any]) -> Any:
        return self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]


@pytest.fixture
def recorder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recorder:
    monkeypatch.setattr(operators, "_RETRY_S", 0.01)
    return Recorder(History(tmp_path / "history"))


async def _operators(recorder: Recorder, *answers: object) -> Operators:
    receivers = Receivers(cast("Any", None), recorder, lambda _: None, Random(1), "http://127.0.0.1:1")
    made = Operators(
        _Answers(*answers), SecretBox((Fernet.generate_key().decode(),)), receivers, recorder, Random(1)
    )
    await made.register("shop", Receiver(0, lives=True))
    return made


def test_webhooks_that_may_be_paused_are_resumed_in_the_end(recorder: Recorder, tmp_path: Path) -> None:
    async def test() -> None:
        made = await _operators(recorder, None, None, True)
        (application,) = made._applications.values()
        application.may_be_paused = True
        await made.resume_all(until=monotonic() + 10)
        assert not application.may_be_paused
        await made.resume_all(until=monotonic() + 10)

    run_async(test())
    recorder._history.close()
    records = [record for record in read_history(tmp_path / "history") if isinstance(record, WebhooksPaused)]
    assert [(record.paused, record.acknowledged) for record in records] == [
        (False, False),
        (False, False),
        (False, True),
    ]


def test_webhooks_that_cannot_be_resumed_are_an_error(recorder: Recorder) -> None:
    async def test() -> None:
        made = await _operators(recorder, None)
        (application,) = made._applications.values()
        application.may_be_paused = True
        with pytest.raises(LoadError):
            await made.resume_all(until=monotonic() + 0.1)

    run_async(test())
    recorder._history.close()


def test_secret_whose_answer_was_lost_is_not_known_and_rolled_again(
    recorder: Recorder, tmp_path: Path
) -> None:
    async def test() -> None:
        made = await _operators(recorder, None, "whsec_new")
        (application,) = made._applications.values()
        await made._roll(application)

    run_async(test())
    recorder._history.close()
    records = [record for record in read_history(tmp_path / "history") if isinstance(record, SecretRolled)]
    assert [record.secret for record in records] == [None, "whsec_new"]
