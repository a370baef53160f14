"""Read the past: with history= the last epochs stay readable, and each answer is exact for its time."""

import kpg

with kpg.open(history=10) as db:
    stock = db.input("stock", key="item", item=str, pieces=int)
    levels = stock.output("levels")
    for pieces in (100, 80, 95):
        stock.upsert([("bolts", pieces)])
        db.advance()

    for epoch in range(3):
        print(f"epoch {epoch}: {levels.rows(as_of=epoch)}")

    for _ in range(20):
        db.advance()
    try:
        levels.rows(as_of=0)
    except kpg.TimeTooEarly as error:
        print(error)
