"""Who forces a frame: the kernel while it is fast; the caller for longer and longer while the kernel is slow."""

from kpg.storage.forcing_choice import LONG_WAIT_SECONDS, MAX_FRAMES, MIN_FRAMES, ForcingChoice

SHORT, LONG = LONG_WAIT_SECONDS / 10, 4 * LONG_WAIT_SECONDS


def frames_of_caller(choice: ForcingChoice) -> int:
    """Return the number of frames that the caller forces from now on, and let it force them."""
    frames = 0
    while not choice.by_kernel:
        choice.note_forced_frame()
        frames += 1
    return frames


def after_long_wait(choice: ForcingChoice) -> int:
    choice.note_wait(LONG)
    return frames_of_caller(choice)


def test_the_kernel_forces_while_waits_are_short():
    choice = ForcingChoice()
    for _ in range(100):
        assert choice.by_kernel
        choice.note_wait(SHORT)


def test_the_caller_forces_more_frames_after_each_long_wait_up_to_a_maximum():
    choice = ForcingChoice()
    counts = [after_long_wait(choice) for _ in range(6)]
    assert counts == [MIN_FRAMES, 4 * MIN_FRAMES, 16 * MIN_FRAMES, 64 * MIN_FRAMES, MAX_FRAMES, MAX_FRAMES]


def test_a_few_short_waits_do_not_hide_a_busy_machine_and_many_do():
    choice = ForcingChoice()
    for _ in range(6):
        after_long_wait(choice)
    for _ in range(10):
        choice.note_wait(SHORT)
    assert after_long_wait(choice) > MAX_FRAMES // 2
    for _ in range(1000):
        choice.note_wait(SHORT)
    assert after_long_wait(choice) == MIN_FRAMES
