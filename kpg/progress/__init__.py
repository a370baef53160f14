"""What may still happen where: pointstamps, path summaries and the frontiers that follow. Runs without any dataflow."""
