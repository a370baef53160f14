"""Many workers: processes that each hold a shard of every operator, and the client that gives them work.

Reading order: wire (frames on a socket), handshake and door (who may connect), codec (rows and counts in frames), mesh
(the connections among ranks), requests and rank (what a worker does when asked), guests (those who bring rows or read
them from elsewhere), coordinator (the one that puts requests in order), generations (how workers begin, and begin
again), database (the objects people hold), local (processes on this machine). Queries as JSON: `kpg.plan.plan_document`.
"""
