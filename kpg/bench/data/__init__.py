"""Data, regenerated from a seed, and readers of the public formats."""
