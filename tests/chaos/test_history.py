"""A history is read as it was written."""

from dataclasses import fields
from pathlib import Path
from threading import Thread

import pytest

from chaos.history import History, LoadStopped, Record, WebhookReceived, read_history
from tests.chaos.sample_run import build_sample


def _write(path: Path, records: list[Record]) -> None:
    history = History(path)
    for record in records:
        history.add(record)
    history.close()


def test_every_kind_of_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    records = build_sample()
    assert {type(record) for record in records} == set(Record.__subclasses__())
    _write(tmp_path / "history", records)
    read = list(read_history(tmp_path / "history"))
    assert read == records
    for before, after in zip(records, read, strict=True):
        for field in fields(before):
            assert type(getattr(before, field.name)) is type(getattr(after, field.name))


def test_every_byte_of_a_body_is_kept(tmp_path: Path) -> None:
    body = bytes(range(256)).decode("latin-1")
    received = WebhookReceived(
        at=1.5, application="a", url="https://a.test/é", connection=1, signature=None, body=body, answer="200"
    )
    _write(tmp_path / "history", [received])
    assert list(read_history(tmp_path / "history")) == [received]


def test_record_is_in_the_file_when_it_was_added(tmp_path: Path) -> None:
    """A run that is killed has lost none of what it recorded."""
    history = History(tmp_path / "history")
    history.add(LoadStopped(at=1.0))
    assert list(read_history(tmp_path / "history")) == [LoadStopped(at=1.0)]
    history.close()


def test_records_of_several_threads_do_not_mix(tmp_path: Path) -> None:
    history = History(tmp_path / "history")

    def add_many(thread: int) -> None:
        for number in range(200):
            history.add(LoadStopped(at=thread * 1000.0 + number))

    threads = [Thread(target=add_many, args=(thread,)) for thread in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    history.close()
    times = [record.at for record in read_history(tmp_path / "history")]
    assert len(times) == 1600
    for thread_number in range(8):
        own = [at for at in times if at // 1000 == thread_number]
        assert own == sorted(own)


@pytest.mark.parametrize(
    "line",
    [
        '{"kind":"LoadStopped"}',
        '{"kind":"LoadStopped","at":1,"other":2}',
        '{"kind":"Nothing","at":1}',
        '{"at":1}',
        "[]",
        "1",
        "",
    ],
)
def test_line_that_is_no_record_is_named(line: str, tmp_path: Path) -> None:
    path = tmp_path / "history"
    path.write_text(f'{{"kind":"LoadStopped","at":1.0}}\n{line}\n')
    with pytest.raises(ValueError, match="line 2 is not a record"):
        list(read_history(path))


def test_last_line_that_is_cut_off_is_named(tmp_path: Path) -> None:
    path = tmp_path / "history"
    path.write_text('{"kind":"LoadStopped","at":1.0}\n{"kind":"LoadSto')
    with pytest.raises(ValueError, match="line 2, the last, is cut off"):
        list(read_history(path))
