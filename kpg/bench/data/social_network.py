"""A social network from a seed, in the shape of LDBC's: people, friends, places, posts, comments, tags.

Friends and activity are skewed: a few people know many and write most. Each part is a dict of int64 columns. Texts
(names, browsers, languages) are numbers of a small dictionary, because joins only compare them. Creation times ascend
with ids.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kpg.bench.data.graphs import Ints

Columns = dict[str, Ints]
PLACES, BROWSERS, LANGUAGES, TAGS = 1_460, 5, 12, 16_000
FRIENDS_PER_PERSON = 18  # on average
POSTS_PER_PERSON = 100
COMMENTS_PER_POST = 2
SKEW = 1.3  # of friends and of activity


@dataclass(frozen=True, slots=True)
class SocialNetwork:
    """All tables of the network."""

    people: Columns  # id, first_name, last_name, gender, birthday, place, browser, ip, created
    knows: Ints  # int64[n, 2], both ways
    posts: Columns  # id, creator, created, browser, language, ip, content, place
    comments: Columns  # id, creator, created, reply_of, place
    tags: Ints  # int64[n, 2]: post, tag


def network(people: int, seed: int = 0, posts: int = POSTS_PER_PERSON) -> SocialNetwork:
    """Return a network of some people, with `posts` posts each on average."""
    random = np.random.default_rng(seed)
    post_count, comment_count = people * posts, people * posts * COMMENTS_PER_POST
    return SocialNetwork(
        persons(random, people),
        friends(random, people),
        posts_of(random, people, post_count),
        comments_of(random, people, post_count, comment_count),
        tags_of(random, post_count),
    )


def skewed(random: np.random.Generator, below: int, count: int) -> Ints:
    """Return numbers below a bound, some of them far more often than others."""
    ranks = np.minimum(below * random.random(count) ** (1 + SKEW), below - 1).astype(np.int64)
    return np.asarray(random.permutation(below)[ranks], np.int64)


def persons(random: np.random.Generator, count: int) -> Columns:
    """Return the people."""
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
    """Return the pairs of friends, each once in each direction."""
    pairs = np.stack(
        [
            skewed(random, people, people * FRIENDS_PER_PERSON // 2),
            random.integers(0, people, people * FRIENDS_PER_PERSON // 2),
        ]
    )
    pairs = pairs[:, pairs[0] != pairs[1]]
    both = np.concatenate([pairs.T, pairs[::-1].T])
    return np.unique(both, axis=0)


def posts_of(random: np.random.Generator, people: int, count: int) -> Columns:
    """Return the posts, each with one value of every attribute."""
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
    """Return the comments; each replies to a post."""
    return {
        "id": np.arange(count, dtype=np.int64),
        "creator": skewed(random, people, count),
        "created": np.sort(random.integers(0, 10**9, count)),
        "reply_of": skewed(random, posts, count) if posts else np.zeros(0, np.int64),
        "place": skewed(random, PLACES, count),
    }


def tags_of(random: np.random.Generator, posts: int) -> Ints:
    """Return the tags of posts: from none to four each, popular ones far more often."""
    tagged = np.repeat(np.arange(posts, dtype=np.int64), random.integers(0, 5, posts))
    return np.unique(np.stack([tagged, skewed(random, TAGS, len(tagged))], axis=1), axis=0)
