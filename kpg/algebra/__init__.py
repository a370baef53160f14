"""Times and frontiers: the partial order that the engine is built on. Imports nothing else of kpg."""
