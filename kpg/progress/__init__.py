"""Progress tracking: pointstamps, path summaries and the frontiers computed from them. Independent of dataflows."""
