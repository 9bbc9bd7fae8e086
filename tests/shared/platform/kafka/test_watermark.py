"""The contiguous watermark, for every order in which records can finish."""

from hypothesis import given
from hypothesis import strategies as st

from shared.platform.kafka.watermark import Watermark


@st.composite
def offsets_and_finishing_order(draw: st.DrawFn) -> tuple[list[int], list[int]]:
    """Offsets grow but may have gaps; they finish in any order, some never, some twice."""
    offsets = sorted(draw(st.sets(st.integers(0, 200), min_size=1, max_size=40)))
    order = draw(st.permutations(offsets))
    finished = order[: draw(st.integers(0, len(order)))]
    return offsets, finished + draw(st.lists(st.sampled_from(offsets), max_size=3)) if finished else []


@given(offsets_and_finishing_order())
def test_position_never_passes_an_unfinished_record(case: tuple[list[int], list[int]]) -> None:
    """After every step it is the first unfinished offset, or the one after the last when all are finished."""
    offsets, order = case
    watermark = Watermark()
    for offset in offsets:
        watermark.start(offset)
    done: set[int] = set()
    for offset in order:
        watermark.finish(offset)
        done.add(offset)
        left = [other for other in offsets if other not in done]
        if left:
            assert watermark.position is not None
            assert watermark.position <= left[0]
            assert not [o for o in offsets if watermark.position <= o < left[0]], "it could have moved on"
        else:
            assert watermark.position == offsets[-1] + 1
        assert watermark.unfinished == len(left)


def test_position_is_none_if_nothing_was_read() -> None:
    """Finishing an offset that was never started does not create a position."""
    watermark = Watermark()
    watermark.finish(7)
    assert watermark.position is None
