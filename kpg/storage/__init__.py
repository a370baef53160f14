"""Storage: what a db keeps in a directory so that an acknowledged transaction outlives its process."""
