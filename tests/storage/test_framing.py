"""Frames: every written record is read, a torn end is cut off, and damage before it is reported with its offset."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpg.errors import Corrupt
from kpg.storage.framing import HEAD, HEADER, encode_frame, encode_head, scan_segment

GROUPS = st.lists(st.lists(st.binary(max_size=40), min_size=1, max_size=3), min_size=1, max_size=5)


def segment(groups: list[list[bytes]], forced_each: bool = True) -> tuple[bytes, list[int]]:
    """Return a segment of groups, and the offset of each frame; each was on disk before the next, or none was."""
    data, salt = encode_head(7)
    starts = []
    for number, records in enumerate(groups):
        starts.append(len(data))
        data += b"".join(encode_frame(records, 7 + number, len(data) if forced_each else HEAD.size, salt))
    return data, starts


@given(GROUPS, st.integers(0, 100))
def test_every_written_record_is_read(groups, zeros):
    data, _ = segment(groups)
    scanned = scan_segment(data + bytes(zeros), "s", 7, last=False)
    assert scanned.groups == tuple(map(tuple, groups)) and scanned.end == len(data) and not scanned.torn


@given(GROUPS, st.data())
def test_a_cut_anywhere_leaves_the_frames_before_it(groups, data):
    whole, starts = segment(groups)
    cut = data.draw(st.integers(0, len(whole) - 1))
    scanned = scan_segment(whole[:cut], "s", 7, last=True)
    kept = sum(1 for start in [*starts[1:], len(whole)] if start <= cut)
    assert scanned.groups == tuple(map(tuple, groups[:kept]))
    assert scanned.torn == (cut not in [*starts, len(whole)])


@given(GROUPS, st.data())
def test_a_flipped_bit_is_damage_if_later_frames_were_forced_after_it_and_a_torn_end_if_not(groups, data):
    whole, starts = segment(groups)
    offset = data.draw(st.integers(HEAD.size, len(whole) - 1))
    bad = bytearray(whole)
    bad[offset] ^= 1 << data.draw(st.integers(0, 7))
    hit = max(number for number, start in enumerate(starts) if start <= offset)
    if hit < len(groups) - 1:
        with pytest.raises(Corrupt, match=f"s is damaged at offset {starts[hit]}"):
            scan_segment(bytes(bad), "s", 7, last=True)
    else:
        scanned = scan_segment(bytes(bad), "s", 7, last=True)
        assert scanned.torn and scanned.groups == tuple(map(tuple, groups[:hit]))
        with pytest.raises(Corrupt, match=f"offset {starts[hit]}"):
            scan_segment(bytes(bad), "s", 7, last=False)


@given(GROUPS.filter(lambda groups: len(groups) > 1), st.data())
def test_frames_that_were_not_forced_one_by_one_may_be_lost_in_any_order(groups, data):
    whole, starts = segment(groups, forced_each=False)
    hit = data.draw(st.integers(0, len(groups) - 1))
    bad = bytearray(whole)
    bad[starts[hit]] ^= 0xFF
    scanned = scan_segment(bytes(bad), "s", 7, last=True)
    assert scanned.torn and scanned.groups == tuple(map(tuple, groups[:hit])) and scanned.end == starts[hit]


def test_a_row_that_looks_like_a_frame_is_not_taken_for_one():
    inner, _ = segment([[b"a"], [b"b"]])
    whole, starts = segment([[b"first"], [inner]])
    without_last_bytes = whole[: starts[1] + HEADER.size + len(inner)]
    scanned = scan_segment(without_last_bytes, "s", 7, last=True)
    assert scanned.torn and scanned.groups == ((b"first",),)


def test_zeros_in_the_middle_are_damage():
    whole, starts = segment([[b"a" * 30], [b"b"]])
    bad = whole[: starts[0]] + bytes(starts[1] - starts[0]) + whole[starts[1] :]
    with pytest.raises(Corrupt, match=f"offset {starts[0]}"):
        scan_segment(bad, "s", 7, last=True)


def test_a_segment_with_another_first_frame_is_not_read():
    whole, _ = segment([[b"a"]])
    with pytest.raises(Corrupt, match="offset 0"):
        scan_segment(whole, "s", 8, last=False)
    assert scan_segment(whole, "s", 8, last=True).torn
