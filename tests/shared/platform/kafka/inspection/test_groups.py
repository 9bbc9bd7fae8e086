"""The assignment of a group member, decoded from the bytes that its client sent."""

from struct import pack

import pytest

from shared.platform.kafka.inspection.groups import decode_assignment


def written(*topics: tuple[str, list[int]], tail: bytes = b"\x00\x00\x00\x00") -> bytes:
    body = b"".join(
        pack(">h", len(name.encode()))
        + name.encode()
        + pack(">i", len(numbers))
        + b"".join(pack(">i", number) for number in numbers)
        for name, numbers in topics
    )
    return pack(">hi", 0, len(topics)) + body + tail


@pytest.mark.parametrize(
    ("assignment", "partitions"),
    [
        (written(("work", [2, 0, 1])), (0, 1, 2)),
        (written(("other", [7]), ("work", [3])), (3,)),
        (written(("other", [7])), ()),
        (written(), ()),
        (b"", ()),  # the group is rebalancing
        (written(("work", [2, 0, 1]))[:-9], ()),
        (pack(">hi", 0, 2**31 - 1), ()),
        (pack(">hi", 0, -1), ()),
        (pack(">hih", 0, 1, -5) + b"x" * 30, ()),
        (pack(">hih", 0, 1, 4) + b"\xff\xfe\xfd\xfc" + b"\x00" * 8, ()),
    ],
)
def test_assignment_is_decoded_and_invalid_ones_have_no_partitions(
    assignment: bytes, partitions: tuple[int, ...]
) -> None:
    """A client may send any bytes."""
    assert decode_assignment(assignment, "work") == partitions
