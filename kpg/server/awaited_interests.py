"""The interests whose next changes clients await, and those among them that may have some.

    awaited.add(interest)          a client awaits the next changes
    awaited.to_look_at()           the interests that may have changes, or an error
    awaited.rest(interest)         it had neither: look at it again when it has received something

An interest at rest was served before, has no unread or delayed changes and no error. It leaves its rest when it
receives changes or another answer, when it is refused, or when its answer fails.
Cost of `to_look_at`: the interests that are not at rest, and one question for each answer of the others. A thousand
idle tenants of one dataflow cost as much as one.
"""

from __future__ import annotations

from collections.abc import Iterator

from kpg.api.contracts import Output
from kpg.service import Interest


class AwaitedInterests:
    """Interests by id, divided into those at rest and those to look at."""

    def __init__(self) -> None:
        self._active: dict[int, Interest] = {}
        self._resting: dict[Output, dict[int, Interest]] = {}  # by the answer that they follow
        self._answers: dict[int, Output] = {}  # of those at rest

    def __contains__(self, number: int) -> bool:
        return number in self._active or number in self._answers

    def add(self, interest: Interest) -> None:
        """Await the next changes of an interest."""
        if interest.id not in self:
            interest.on_news = self._wake
            self._active[interest.id] = interest

    def remove(self, number: int) -> None:
        """Await no changes of an interest; does nothing if none are awaited."""
        interest = self._active.pop(number, None) or self._leave_rest(number)
        if interest is not None:
            interest.on_news = None

    def rest(self, interest: Interest) -> None:
        """Do not look at an interest before it or its answer has news."""
        answer = interest.answer
        if answer is not None and self._active.pop(interest.id, None) is not None:
            self._answers[interest.id] = answer
            self._resting.setdefault(answer, {})[interest.id] = interest

    def _wake(self, interest: Interest) -> None:
        if self._leave_rest(interest.id) is not None:
            self._active[interest.id] = interest

    def _leave_rest(self, number: int) -> Interest | None:
        answer = self._answers.pop(number, None)
        if answer is None:
            return None
        followers = self._resting[answer]
        interest = followers.pop(number)
        if not followers:
            del self._resting[answer]
        return interest

    def to_look_at(self) -> list[Interest]:
        """Return the interests that are not at rest, with those whose answer has failed."""
        for answer in [answer for answer in self._resting if answer.ended or answer.error() is not None]:
            for interest in tuple(self._resting[answer].values()):
                self._wake(interest)
        return list(self._active.values())

    def active(self) -> Iterator[Interest]:
        """Return the interests that are not at rest."""
        return iter(self._active.values())
