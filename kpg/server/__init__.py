"""A server for many clients: WebSocket and HTTP on one port, sessions without I/O, and one thread for the engine."""
