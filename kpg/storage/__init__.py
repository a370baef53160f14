"""Storage: the files in a directory that let an acknowledged transaction outlive its process."""
