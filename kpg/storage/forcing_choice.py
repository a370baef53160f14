"""Choose which thread forces a small frame to disk: one of the kernel, or that of the caller.

    choice.by_kernel              whether the kernel forces the next frame
    choice.note_wait(seconds)     the caller has waited this long for a frame that the kernel forces

A thread of the kernel forces the frame while the caller works, so on a quiet machine the caller hardly waits. But where
other processes use all cores, that thread may wait for a core for some milliseconds. So after a long wait the caller
forces some frames itself: it has a core already. Either way the frame is durable when the wait is over.
"""

from __future__ import annotations

LONG_WAIT_SECONDS = 0.001  # many times what a quiet machine needs, and less than a process keeps a core
FRAMES_AFTER_LONG_WAIT = 256  # forced by the caller; so a long wait adds a hundredth of its length to a transaction


class ForcingChoice:
    """The choice for the frames of one file."""

    __slots__ = ("_frames_left",)

    def __init__(self) -> None:
        self._frames_left = 0  # that the caller forces

    @property
    def by_kernel(self) -> bool:
        """Whether the kernel forces the next frame."""
        return not self._frames_left

    def note_wait(self, seconds: float) -> None:
        """Note how long the caller has waited for a frame that the kernel forces."""
        if seconds > LONG_WAIT_SECONDS:
            self._frames_left = FRAMES_AFTER_LONG_WAIT

    def note_forced_frame(self) -> None:
        """Note that the caller has forced a frame."""
        self._frames_left = max(0, self._frames_left - 1)
