"""The lock that is given in the order it is asked for."""

import threading

from kpg.cluster.fair_lock import FairLock


def test_a_busy_thread_does_not_starve_another():
    turns, stop, got = FairLock(), threading.Event(), threading.Event()

    def busy():
        while not stop.is_set():
            with turns:
                stop.wait(0.001)

    def patient():
        for _ in range(20):
            with turns:
                pass
        got.set()

    first, second = threading.Thread(target=busy), threading.Thread(target=patient)
    first.start()
    second.start()
    assert got.wait(120)
    stop.set()
    first.join()
    second.join()


def test_the_lock_is_reentrant_and_exclusive():
    turns, inside, most = FairLock(), [], []

    def enter():
        for _ in range(200):
            with turns, turns:
                inside.append(1)
                most.append(len(inside))
                inside.pop()

    threads = [threading.Thread(target=enter) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(most) == {1}
    assert len(most) == 800
