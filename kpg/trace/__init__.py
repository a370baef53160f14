"""Traces: sorted batches of updates, the spines that merge them, and the primitives that read them by key."""
