"""Ranks as processes of their own: `python -m kpg.cluster`, started by `kpg.cluster.rank_starter`."""

from kpg.cluster import rank
from kpg.cluster.rank_starter import fork_ranks

if __name__ == "__main__":
    fork_ranks()
    rank.main()
