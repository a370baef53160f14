"""Collections as descriptions, and their rendering into operators."""
