"""Observe a db: its events as relations, its metrics for a monitor, and sinks that time or write answers.

This package reads events and answers from outside the engine; nothing below the service imports it.
"""
