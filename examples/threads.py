"""One db, many threads and an event loop: the db runs on a thread of its own and executes calls in order."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import kpg

with kpg.open(background=True) as db:
    visits = db.input("visits", page=str, visitor=int)
    pages = visits.count("page").output("pages")

    def visit(visitor: int) -> None:
        for page in ("home", "shop", "cart")[: 1 + visitor % 3]:
            visits.insert([(page, visitor)])

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(visit, range(300)))

    async def main() -> None:
        epoch = await db.aio(lambda db: db.advance())  # the event loop continues meanwhile
        print(f"epoch {epoch}:", await db.aio(lambda db: db["pages"].rows()))

    asyncio.run(main())
    assert sorted(pages.rows()) == [("cart", 100), ("home", 300), ("shop", 200)]
