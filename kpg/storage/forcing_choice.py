"""Choose which thread forces a small frame to disk: one of the kernel, or that of the caller.

    choice.by_kernel              whether the kernel forces the next frame
    choice.note_wait(seconds)     the caller has waited this long for a frame that the kernel forces

A thread of the kernel forces the frame while the caller works, so on a quiet machine the caller hardly waits. But where
other processes use all cores, that thread may wait for a core for some milliseconds. So after a long wait the caller
forces some frames itself: it has a core already. After each further long wait these are four times as many, and short
waits slowly make them fewer again. Either way the frame is durable when the wait is over.
"""

from __future__ import annotations

LONG_WAIT_SECONDS = 0.001  # many times what a quiet machine needs, and less than a process keeps a core
MIN_FRAMES = 32  # that the caller forces after a first long wait: the disk of a quiet machine has hiccups, too
MAX_FRAMES = 8192  # the same on a machine without a free core; then a long wait costs a transaction nothing
SHORT_WAITS = 32  # that divide the number of frames by about e


class ForcingChoice:
    """The choice for the frames of one file."""

    __slots__ = ("_frames_left", "_next_frames")

    def __init__(self) -> None:
        self._frames_left = 0  # that the caller forces
        self._next_frames = MIN_FRAMES  # that it forces after the next long wait

    @property
    def by_kernel(self) -> bool:
        """Whether the kernel forces the next frame."""
        return not self._frames_left

    def note_wait(self, seconds: float) -> None:
        """Note how long the caller has waited for a frame that the kernel forces."""
        frames = self._next_frames
        if seconds > LONG_WAIT_SECONDS:
            self._frames_left, self._next_frames = frames, min(MAX_FRAMES, 4 * frames)
        else:
            self._next_frames = max(MIN_FRAMES, frames - frames // SHORT_WAITS)

    def note_forced_frame(self) -> None:
        """Note that the caller has forced a frame."""
        self._frames_left = max(0, self._frames_left - 1)
