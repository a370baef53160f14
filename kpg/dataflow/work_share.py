"""A share of the time for work on answers, beside requests that arrive without a pause.

    share.requests_took(seconds)    requests were served for so long
    share.least_seconds             how long the next slice must last before a request may end it
    share.slice_took(seconds)       a slice has lasted so long

Requests go before work, and end its slices. Without a share, clients that write without a pause would leave a heavy
query one step between two writes. With it, work gets at least WORK_SHARE of the time in the long run. One request is
never delayed by more than MAX_SLICE_SECONDS, so what is owed beyond that is forgotten.
"""

WORK_SHARE = 0.25  # of the time, while there is work
MAX_SLICE_SECONDS = 0.002


class WorkShare:
    """How much time requests owe to work."""

    def __init__(self) -> None:
        self.least_seconds = 0.0

    def requests_took(self, seconds: float) -> None:
        """Add what requests owe after this time."""
        owed = seconds * WORK_SHARE / (1 - WORK_SHARE)
        self.least_seconds = min(MAX_SLICE_SECONDS, self.least_seconds + owed)

    def slice_took(self, seconds: float) -> None:
        """Subtract the time of a slice."""
        self.least_seconds = max(0.0, self.least_seconds - seconds)

    def forgive(self) -> None:
        """Owe nothing: there is no work."""
        self.least_seconds = 0.0
