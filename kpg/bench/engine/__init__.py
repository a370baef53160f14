"""Experiments with the engine on one worker: E1 to E10, and O1 with its event log."""
