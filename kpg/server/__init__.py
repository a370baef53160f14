"""`kpg serve`: many clients, one engine. Sessions are sans-I/O; sockets, TLS and signals are in `listener`."""
