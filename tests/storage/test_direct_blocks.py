"""Writes past the page cache: a file holds what was written, whoever wrote it, and zeros behind the end."""

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kpg.storage import local_files
from kpg.storage.direct_blocks import BLOCK_BYTES, MAX_DATA_BYTES, DirectBlocks, block_end
from kpg.storage.forcing_choice import LONG_WAIT_SECONDS, MIN_FRAMES
from kpg.storage.kernel_write import open_kernel_write
from kpg.storage.local_files import RESERVED_BYTES, LocalSegment
from kpg.testing.manual_clock import ManualClock

HEAD = b"head of 24 bytes, filled"
SIZES = st.one_of(
    st.integers(1, 200),
    st.integers(BLOCK_BYTES - 150, BLOCK_BYTES + 150),
    st.integers(MAX_DATA_BYTES - 1, MAX_DATA_BYTES + 1),
    st.just(RESERVED_BYTES + 5),
)


def can_write_blocks() -> bool:
    with tempfile.TemporaryDirectory() as directory:
        segment = LocalSegment(f"{directory}/f", HEAD)
        segment.close()
        return segment._blocks is not None


needs_direct = pytest.mark.skipif(not can_write_blocks(), reason="this filesystem is always cached")


def frame_of(number: int, size: int) -> bytes:
    return bytes([number % 255 + 1]) * size


@needs_direct
@given(st.lists(st.tuples(st.sampled_from(["by kernel", "by caller", "cached"]), SIZES), max_size=12))
def test_a_segment_holds_all_frames_in_order_and_then_zeros(steps):
    with tempfile.TemporaryDirectory() as directory:
        segment = LocalSegment(f"{directory}/f", HEAD)
        expected = HEAD
        for number, (kind, size) in enumerate(steps):
            frame = frame_of(number, size)
            if kind != "cached":
                segment._choice.note_wait(2 * LONG_WAIT_SECONDS if kind == "by caller" else 0.0)
                segment.begin_append([frame[:7], frame[7:]])
            else:
                segment.append([frame[:7], frame[7:]])
                segment.begin_flush()
            segment.wait_flush()
            expected += frame
            assert segment.end == segment.forced == len(expected)
            content = Path(f"{directory}/f").read_bytes()
            assert content[: len(expected)] == expected
            assert not any(content[len(expected) :])
            assert kind == "cached" or size > MAX_DATA_BYTES or len(content) >= block_end(len(expected))
        segment.close()


@needs_direct
def test_the_caller_forces_some_frames_after_a_long_wait_for_the_kernel(tmp_path, monkeypatch):
    seconds = ManualClock()
    monkeypatch.setattr(local_files, "perf_counter", seconds.now)
    forced = []
    monkeypatch.setattr(local_files, "force", forced.append)
    segment = LocalSegment(str(tmp_path / "f"), HEAD)
    waits = [LONG_WAIT_SECONDS / 2, 2 * LONG_WAIT_SECONDS, 0.0]
    wait = segment._blocks.wait
    monkeypatch.setattr(segment._blocks, "wait", lambda: (seconds.advance(waits.pop(0)), wait()) if waits else wait())
    by_caller = []
    for number in range(MIN_FRAMES + 4):
        before = len(forced)
        segment.begin_append([frame_of(number, 10)])
        segment.wait_flush()
        by_caller.append(len(forced) > before)
    assert by_caller == [False, False] + [True] * MIN_FRAMES + [False, False]
    segment.append([frame_of(0, 10)])  # through the page cache: the kernel forces no such frame
    segment.begin_flush()
    segment.begin_append([frame_of(0, 10)])
    segment.wait_flush()
    assert len(forced) == MIN_FRAMES + 1
    segment.close()


@needs_direct
def test_a_second_write_waits_for_the_first(tmp_path):
    (tmp_path / "f").write_bytes(bytes(4 * BLOCK_BYTES))
    blocks = DirectBlocks(str(tmp_path / "f"), open_kernel_write())
    blocks.begin(b"a" * 5000, 10, force=True)
    blocks.begin(b"b" * 5000, 5010, force=False)  # the caller of the first was interrupted before it waited
    blocks.wait()
    assert (tmp_path / "f").read_bytes() == (bytes(10) + b"a" * 5000 + b"b" * 5000).ljust(4 * BLOCK_BYTES, b"\0")
    blocks.close()


@pytest.mark.skipif(open_kernel_write() is None, reason="only Linux writes past the page cache")
def test_a_file_that_cannot_be_written_past_the_page_cache_is_refused(tmp_path):
    read, write = os.pipe()
    with pytest.raises(OSError):
        DirectBlocks(f"/proc/self/fd/{read}", open_kernel_write())
    os.close(read)
    os.close(write)


def test_a_segment_without_direct_blocks_holds_all_frames(tmp_path, monkeypatch):
    def refuse(path, write):
        raise OSError(22, "Invalid argument")

    monkeypatch.setattr(local_files, "DirectBlocks", refuse)
    segment = LocalSegment(str(tmp_path / "f"), HEAD)
    for number in range(3):
        segment.begin_append([frame_of(number, 100)])
        segment.wait_flush()
    segment.close()
    expected = HEAD + b"".join(frame_of(number, 100) for number in range(3))
    assert (tmp_path / "f").read_bytes().rstrip(b"\0") == expected
