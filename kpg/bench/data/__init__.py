"""Generated data, the same for the same seed, and readers of public file formats."""
