"""A demo in one process: a social network that changes all the time, and queries that are installed while it does.

    make demo-embedded                         about twenty seconds
    python examples/demo.py --seconds 60 --people 200000 --changes 1000

People follow and unfollow each other, a few hundred times in each transaction. Meanwhile the demo installs three
queries, which share the indexes of `follows`. Each first answers for all present rows; after that, each transaction
brings every answer up to date before the next one begins. At the end the demo compares all answers with a computation
from scratch.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

import kpg
from kpg import col, lit

sys.path.insert(0, str(Path(__file__).parent))
from demo_screen import Lines, Screen, Silence  # noqa: E402 (beside this file, wherever it is started from)
from standing import Progress, Standing  # noqa: E402

# The queries


def most_followed(db: kpg.Database) -> kpg.Collection:
    """Count the followers of everyone; keep the first five."""
    followers = db["follows"].arrange("followed").count("followed", name="followers")
    return followers.filter(col("followers") > 50).group_by().top_k(5, by="-followers")


def may_know(db: kpg.Database) -> kpg.Collection:
    """For each watched person, suggest people that most of their friends follow, and they themselves do not."""
    follows, watched = db["follows"].arrange("follower"), db["watched"]
    friends = follows.join(watched, on={"follower": "person"}).select(person="follower", friend="followed")
    theirs = follows.join(friends, on={"follower": "friend"}).select(person="person", other="followed")
    strangers = theirs.antijoin(friends.rename(friend="other"), on=["person", "other"])
    strangers = strangers.filter(col("person") != col("other"))
    return strangers.count("person", "other", name="paths").group_by("person").top_k(2, by=("-paths", "other"))


def distances(db: kpg.Database) -> kpg.Collection:
    """Count the people at each distance from the watched ones: a recursion, maintained under removals too."""
    follows, watched = db["follows"].arrange("follower"), db["watched"]

    def step(near: kpg.Collection) -> kpg.Collection:
        onward = follows.join(near, on={"follower": "person"}).select(person="followed", steps=col("steps") + 1)
        return onward.concat(near).group_by("person").min("steps")

    start = watched.select("person", steps=lit(0))
    return start.iterate(step).count("steps", name="people")


QUERIES = {"most followed": most_followed, "may know": may_know, "distances": distances}


# The stream


class Network:
    """The present follows, and a generator of changes."""

    def __init__(self, people: int, follows: int) -> None:
        self.people = people
        self.random = np.random.default_rng(7)
        self.now = self._pairs(follows)

    def _pairs(self, n: int) -> np.ndarray:
        """Return random follows; a few people have most of the followers."""
        follower = self.random.integers(0, self.people, n)
        followed = (self.people * self.random.random(n) ** 2).astype(np.int64)
        return np.stack([follower, followed], axis=1)

    def change(self, n: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the next transaction: as many new follows as ended ones."""
        ended = np.unique(self.random.integers(0, len(self.now), n // 2))
        old, new = self.now[ended], self._pairs(len(ended))
        self.now[ended] = new
        return new, old


# The same answers from scratch


def from_scratch(pairs: np.ndarray, watched: list[int]) -> dict[str, list[tuple[int, ...]]]:
    """Compute the three answers in plain Python, for comparison."""
    friends: dict[int, Counter[int]] = {}
    for follower, followed in pairs.tolist():
        friends.setdefault(follower, Counter())[followed] += 1
    counts = Counter(pairs[:, 1].tolist())
    top = sorted(((-n, person) for person, n in counts.items() if n > 50))[:5]
    known: list[tuple[int, ...]] = []
    for person in watched:
        mine = friends.get(person, Counter())
        paths = Counter[int]()
        for friend, times in mine.items():
            for other, more in friends.get(friend, Counter()).items():
                if other not in mine and other != person:
                    paths[other] += times * more
        known += [(person, other, n) for n, other in sorted((-n, other) for other, n in paths.items())[:2]]
    steps, near, edge = Counter({0: len(watched)}), set(watched), watched
    while edge:
        edge = list({other for person in edge for other in friends.get(person, ())} - near)
        near |= set(edge)
        steps[max(steps) + 1] = len(edge)
    return {
        "most followed": sorted((person, -n) for n, person in top),
        "may know": sorted((person, other, -n) for person, other, n in known),
        "distances": sorted((step, n) for step, n in steps.items() if n),
    }


# The run


@dataclass
class State(Progress):
    """The figures on the screen."""

    load_ms: float = 0.0
    latencies_ms: dict[int, list[float]] = field(default_factory=dict)  # by number of queries installed

    def recent(self) -> list[float]:
        """Latencies with the queries that are installed now."""
        return self.latencies_ms.get(len(self.queries), [])


def run(db: kpg.Database, options: argparse.Namespace, show: Screen | Lines | Silence) -> tuple[State, Network]:
    """Stream changes for a while, and install a query every fifth of the time, until all are installed."""
    network, state = Network(options.people, options.people * 6), State(options.seconds)
    follows = db.input("follows", follower=int, followed=int)
    watched = db.input("watched", person=int)
    by_follower, by_followed = follows.arrange("follower"), follows.arrange("followed")
    began = time.perf_counter()
    follows.insert(network.now)
    watched.insert([(person,) for person in options.watched])
    db.advance()
    state.load_ms, state.rows = 1000 * (time.perf_counter() - began), len(network.now)
    show.say(f"loaded {state.rows:,} follows into two indexes in {state.load_ms:,.0f} ms")
    waiting = dict(QUERIES)
    start = time.perf_counter()
    while (elapsed := time.perf_counter() - start) < options.seconds or waiting:
        state.elapsed = elapsed
        if waiting and elapsed > options.seconds * (1 + len(state.queries)) / 5:
            name = next(iter(waiting))
            state.queries[name] = install(db, name, waiting.pop(name))
            show.say(f"installed {name!r}: first answer after {state.queries[name].first_answer_ms:,.1f} ms")
        transact(db, network, state, options.changes)
        show.update(db, state)
        if time.perf_counter() - start < state.epoch / options.rate:
            db.idle()  # a quiet moment: merge and compact
            time.sleep(max(0.0, state.epoch / options.rate - (time.perf_counter() - start)))
    state.elapsed = options.seconds
    assert by_follower.rows and by_followed.rows
    return state, network


def install(db: kpg.Database, name: str, query: object) -> Standing:
    """Install a query, and wait for its first answer."""
    began = time.perf_counter()
    output = query(db).output(name)  # type: ignore[operator]
    output.snapshot()
    return Standing(output, db.epoch, 1000 * (time.perf_counter() - began))


def transact(db: kpg.Database, network: Network, state: State, changes: int) -> None:
    """Run one transaction; when advance() returns, all answers include it."""
    new, old = network.change(changes)
    began = time.perf_counter()
    db["follows"].insert(new)
    db["follows"].remove(old)
    db.advance()
    took = 1000 * (time.perf_counter() - began)
    state.latencies_ms.setdefault(len(state.queries), []).append(took)
    state.epoch, state.changes = db.epoch, state.changes + len(new) + len(old)


def rehearse(options: argparse.Namespace) -> None:
    """Run everything once, very small, so that the demo does not measure the loading of machine code."""
    small = argparse.Namespace(**{**vars(options), "people": 5_000, "seconds": 0.5, "rate": 100, "watched": [1]})
    with kpg.open() as db, Silence() as show:
        run(db, small, show)


def release(db: kpg.Database, state: State) -> None:
    """Drop the queries, and print the memory that this frees."""

    def held() -> float:
        return sum(index["bytes"] for index in db.describe()["arrangements"]) / 1e6

    before = held()
    for standing in state.queries.values():
        standing.output.release()
    print(f"dropped the queries: {before:.1f} MB of arrangements before, {held():.1f} MB after, the relations' own")


def main(arguments: list[str] | None = None) -> None:
    """Run the demo, then check its answers."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=20, help="duration of the stream")
    parser.add_argument("--people", type=int, default=20_000, help="number of people; six follows each")
    parser.add_argument("--changes", type=int, default=200, help="changes in each transaction")
    parser.add_argument("--rate", type=float, default=25, help="maximum transactions a second")
    parser.add_argument("--plain", action="store_true", help="print lines, even on a terminal")
    parser.add_argument("--still", action="store_true", help="draw only the last screen, in colour even into a file")
    options = parser.parse_args(arguments)
    options.watched = [11, 222, 3333]
    plain = options.plain or not (options.still or sys.stdout.isatty())
    rehearse(options)
    with kpg.open() as db, Lines() if plain else Screen(options.still) as show:
        state, network = run(db, options, show)
        expected = from_scratch(network.now, options.watched)
        right = {name: sorted(query.output.rows()) == expected[name] for name, query in state.queries.items()}
        show.finish(db, state, right)
        release(db, state)
        if not all(right.values()):
            raise SystemExit("an answer differs from the one from scratch: this is a bug in kpg")


if __name__ == "__main__":
    main()
