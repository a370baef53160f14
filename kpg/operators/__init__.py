"""The operators. Each file opens with the contract of its operator."""
