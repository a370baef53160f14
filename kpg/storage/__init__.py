"""Storage: a log and checkpoints in a directory, which make acknowledged transactions durable."""
