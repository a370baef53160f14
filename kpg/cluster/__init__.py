"""A db on several workers: one coordinator in the user's process, and one rank in each worker process.

Reading order: frames and frame_codec (bytes), request_frames (typed messages with blocks of rows), handshake and
authenticated_listener (connections), mesh (ranks among themselves), rank_commands, rank_generation, command_handlers
and rank (what a rank does), data_requests, data_service and data_connections (rows from and to clients), coordinator,
request_history and generations (one order of commands, and recovery), cluster_transactions and cluster_database (what
users hold).
"""
