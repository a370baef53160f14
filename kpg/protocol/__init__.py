"""What clients and the server say to each other: versioned JSON messages, without any I/O."""
