"""Two clients and a server: one client changes a network, the other follows the nodes reachable from one node.

Run it: python examples/clients.py
"""

import kpg
from kpg.server.listener import ListenAddress
from kpg.server.running_server import RunningServer, Settings

RULES = """
reach(x, y) :- link(x, y).
reach(x, z) :- reach(x, y), link(y, z).
"""

with RunningServer(Settings(address=ListenAddress(port=0), open_to_all=True)) as server:
    with kpg.connect(server.url) as operator, kpg.connect(server.url) as viewer:
        operator.create_relation("link", {"x": str, "y": str})
        operator.register(RULES)
        operator.insert("link", [("ann", "bob"), ("bob", "cy"), ("dan", "eve")])

        follows = viewer.interest("reach", arguments={"x": "ann"})
        print("at first:", sorted(y for (_, y), _, _ in follows.next()))

        operator.transact([("link", ("cy", "dan")), ("link", ("ann", "bob"), -1), ("link", ("ann", "cy"))])
        for row, time, diff in sorted(follows.next()):
            print(f"time {time}: {'+' if diff > 0 else '-'} {row[1]}")
        print("now:", sorted(y for _, y in follows.rows()))
