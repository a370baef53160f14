"""Many workers: processes that each hold a shard of every operator, and the client that gives them work.

Reading order: wire (frames on a socket), handshake (who may connect), codec (rows and counts in frames), mesh (the
connections among ranks), plans (queries as JSON), requests and rank (what a worker does when asked), coordinator (the
one that puts requests in order), database (the objects people hold), local (processes on this machine).
"""
