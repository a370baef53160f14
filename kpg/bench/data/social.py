"""A social network from a seed, in the shape of LDBC's: people, friends, places, posts, comments, tags.

Friends and activity are skewed: a few people know many and write most. Each part is a dict of int64 columns; texts
(names, browsers, languages) are numbers of a small dictionary, as the joins only compare them. Times of creation
grow with ids.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kpg.bench.data.graphs import Ints

Columns = dict[str, Ints]
PLACES, BROWSERS, LANGUAGES, TAGS = 1_460, 5, 12, 16_000
FRIENDS = 18  # of a person, on average
POSTS = 100
COMMENTS = 2  # for each post
SKEW = 1.3  # of friends and of activity


@dataclass(frozen=True, slots=True)
class Network:
    """All of it."""

    people: Columns  # id, first_name, last_name, gender, birthday, place, browser, ip, created
    knows: Ints  # int64[n, 2], both ways
    posts: Columns  # id, creator, created, browser, language, ip, content, place
    comments: Columns  # id, creator, created, reply_of, place
    tags: Ints  # int64[n, 2]: post, tag


def network(people: int, seed: int = 0, posts: int = POSTS) -> Network:
    """A network of so many people."""
    random = np.random.default_rng(seed)
    many, written = people * posts, people * posts * COMMENTS
    return Network(
        persons(random, people),
        friends(random, people),
        posts_of(random, people, many),
        comments_of(random, people, many, written),
        tags_of(random, many),
    )


def skewed(random: np.random.Generator, below: int, count: int) -> Ints:
    """Numbers below some bound, small ones far more often, then shuffled so that rank and number are unrelated."""
    ranks = np.minimum(below * random.random(count) ** (1 + SKEW), below - 1).astype(np.int64)
    return np.asarray(random.permutation(below)[ranks], np.int64)


def persons(random: np.random.Generator, count: int) -> Columns:
    """The people."""
    return {
        "id": np.arange(count, dtype=np.int64),
        "first_name": skewed(random, 2_000, count),
        "last_name": skewed(random, 5_000, count),
        "gender": random.integers(0, 2, count),
        "birthday": random.integers(0, 365 * 40, count),
        "place": skewed(random, PLACES, count),
        "browser": skewed(random, BROWSERS, count),
        "ip": random.integers(0, 2**32, count),
        "created": np.sort(random.integers(0, 10**9, count)),
    }


def friends(random: np.random.Generator, people: int) -> Ints:
    """Who knows whom: each pair once in each direction, nobody themself."""
    pairs = np.stack([skewed(random, people, people * FRIENDS // 2), random.integers(0, people, people * FRIENDS // 2)])
    pairs = pairs[:, pairs[0] != pairs[1]]
    both = np.concatenate([pairs.T, pairs[::-1].T])
    return np.unique(both, axis=0)


def posts_of(random: np.random.Generator, people: int, count: int) -> Columns:
    """The posts, each with one value of every attribute."""
    return {
        "id": np.arange(count, dtype=np.int64),
        "creator": skewed(random, people, count),
        "created": np.sort(random.integers(0, 10**9, count)),
        "browser": skewed(random, BROWSERS, count),
        "language": skewed(random, LANGUAGES, count),
        "ip": random.integers(0, 2**32, count),
        "content": random.permutation(count),
        "place": skewed(random, PLACES, count),
    }


def comments_of(random: np.random.Generator, people: int, posts: int, count: int) -> Columns:
    """The comments; each replies to a post."""
    return {
        "id": np.arange(count, dtype=np.int64),
        "creator": skewed(random, people, count),
        "created": np.sort(random.integers(0, 10**9, count)),
        "reply_of": skewed(random, posts, count) if posts else np.zeros(0, np.int64),
        "place": skewed(random, PLACES, count),
    }


def tags_of(random: np.random.Generator, posts: int) -> Ints:
    """The tags of posts: from none to four each, popular ones far more often."""
    each = np.repeat(np.arange(posts, dtype=np.int64), random.integers(0, 5, posts))
    return np.unique(np.stack([each, skewed(random, TAGS, len(each))], axis=1), axis=0)
