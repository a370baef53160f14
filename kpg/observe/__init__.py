"""What a db says about itself: its events as relations, its figures for a monitor, sinks that time and write answers.

Beside the engine: reads events and answers, and is imported by nothing below the server.
"""
