"""Clients of a server: `kpg.connect` and `kpg.connect_async`, two drivers of the same procedures without I/O.

Reading order: calls (requests and their results), conversation and change_feed (state), procedures (what to send and
when to wait), driven_methods and client_methods (methods for both), connection and async_connection (sockets).
"""
