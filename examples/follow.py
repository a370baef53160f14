"""An answer as a file: one db captures it, another replays it at the same times. Any Arrow library can read it."""

import tempfile
from pathlib import Path

import kpg
from kpg import col

path = Path(tempfile.mkdtemp()) / "large.arrow"

with kpg.open() as db:
    payments = db.input("payments", account=int, amount=int)
    with payments.filter(col("amount") > 1000).output("large").capture(path):
        for epoch in range(3):
            payments.insert([(epoch, 500), (epoch, 5000)])
            db.advance()

for changes, upper in kpg.replay(path):
    print(f"complete up to {upper}: {changes.num_rows} updates")

with kpg.open() as copy:
    large = copy.input("large", account=int, amount=int)
    totals = large.group_by("account").sum("amount").output("totals")
    copy.replay(path, into=large)
    print("replayed:", totals.rows(), "at epoch", copy.epoch)
