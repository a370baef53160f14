"""Experiments with several workers, Spark and disks (S1 to S12)."""
