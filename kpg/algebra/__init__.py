"""Times, frontiers and diffs: the mathematics everything else stands on. Imports nothing."""
