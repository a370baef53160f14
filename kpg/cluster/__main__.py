"""A rank as a process of its own: `python -m kpg.cluster`, started by `kpg.cluster.local`."""

from kpg.cluster.rank import main

if __name__ == "__main__":
    main()
