"""Append to a file past the page cache: the disk starts to write at once, and the caller does not wait for it.

    blocks.begin(data, offset, force); ...; blocks.wait()      then the disk has the data; with `force`, durably

The file is written in whole blocks, so each write repeats the beginning of the block in which the last one ended. The
caller must have space for whole blocks in the file already, so that a write changes no metadata. Bytes behind the data,
up to the end of the block, become zeros.
"""

from __future__ import annotations

import ctypes
import mmap
import os

from kpg.storage.kernel_write import KernelWrite

BLOCK_BYTES = 4096  # a multiple of the sectors of all usual disks
MAX_DATA_BYTES = 15 * BLOCK_BYTES  # larger data are written through the page cache: copying them would cost more


def block_end(offset: int) -> int:
    """Return the end of the block that holds the byte before an offset."""
    return -(-offset // BLOCK_BYTES) * BLOCK_BYTES


class DirectBlocks:
    """The end of one file, in memory that the kernel can write to disk."""

    def __init__(self, path: str, write: KernelWrite) -> None:
        """Open a file of at least one block; raise OSError if it cannot be written past the page cache."""
        self._write = write
        self._memory = mmap.mmap(-1, MAX_DATA_BYTES + BLOCK_BYTES)  # aligned as the kernel requires
        self._address = ctypes.addressof(ctypes.c_char.from_buffer(self._memory))
        self._start = self._end = 0  # the offsets in the file of the memory, and of the end of its data
        self.fd = os.open(path, os.O_RDWR | os.O_DIRECT | os.O_CLOEXEC)
        try:
            self._check()
        except OSError:
            self.close()
            raise

    def _check(self) -> None:
        """Write the first block again, as it is: the filesystem may refuse."""
        os.preadv(self.fd, [memoryview(self._memory)[:BLOCK_BYTES]], 0)
        self._write.begin(self.fd, self._address, BLOCK_BYTES, 0, force=True)
        self._write.wait()
        self._start = self._end = -1  # the block at the end of the file is read before the first write

    def begin(self, data: bytes, offset: int, force: bool) -> None:
        """Start to write at an offset, and to force the data to disk if asked for. They have at most MAX_DATA_BYTES."""
        self._write.wait()  # an interrupted caller may have left a write of this memory under way
        if offset != self._end:
            self._load(offset)
        elif offset - self._start >= BLOCK_BYTES:
            self._skip_full_blocks()
        position = offset - self._start
        self._memory[position : position + len(data)] = data
        self._end = offset + len(data)
        self._write.begin(self.fd, self._address, block_end(self._end) - self._start, self._start, force)

    def _load(self, offset: int) -> None:
        """Read the block in which an offset lies: other writers of this process were here."""
        self._start = offset // BLOCK_BYTES * BLOCK_BYTES
        self._memory[:] = bytes(len(self._memory))
        os.preadv(self.fd, [memoryview(self._memory)[:BLOCK_BYTES]], self._start)
        kept = offset - self._start
        self._memory[kept:BLOCK_BYTES] = bytes(BLOCK_BYTES - kept)

    def _skip_full_blocks(self) -> None:
        """Move the last block, which has space left, to the front of the memory."""
        start = self._end // BLOCK_BYTES * BLOCK_BYTES
        used = self._end - self._start
        kept = self._memory[start - self._start : used]
        self._memory[:used] = kept.ljust(used, b"\0")
        self._start = start

    def wait(self) -> None:
        """Wait until the disk has the data, perhaps in its own cache unless they are forced."""
        self._write.wait()

    def close(self) -> None:
        """Close the file. No write may be under way."""
        os.close(self.fd)
