"""A TCP proxy that cuts its connections after a random number of bytes, in the middle of a frame or between two.

with CuttingProxy(server.url, seed) as proxy: kpg.connect(proxy.url, ...)
"""

import asyncio
import random
import threading
from concurrent.futures import Future

CHUNK_BYTES = 1 << 16


class CuttingProxy:
    """Forwards connections to a server. `longest` is the most bytes that a new one carries, None for any number."""

    def __init__(self, url: str, seed: int = 0) -> None:
        self.longest: int | None = None
        self.cuts = 0
        self._extra = 0  # bytes that the next connection may carry beyond its share
        self.accepts = True
        self._target = int(url.rsplit(":", 1)[1])
        self._chance = random.Random(seed)
        self._writers: set[asyncio.StreamWriter] = set()
        self._left: list[list[int]] = []  # bytes that each connection may still carry
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> "CuttingProxy":
        self._thread.start()
        self._server = self._on_loop(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.url = f"ws://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    def __exit__(self, *_) -> None:
        self._on_loop(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()

    def start_cutting(self, longest: int) -> None:
        """Cut all connections now, and each new one after at most so many bytes."""
        self.longest = longest
        self.cut()

    def cut_later(self, longest: int) -> None:
        """Let the first connection carry 1,000 bytes more than others, so that it opens."""
        self.longest, self._extra = longest, 1_000

    def cut_at_next_byte(self) -> None:
        """Cut each connection after the first byte of what it carries next."""
        for left in self._left:
            left[0] = 1

    def cut(self) -> None:
        """Cut all connections now."""
        self._on_loop(self._cut(set(self._writers)))

    def _on_loop(self, work):
        future: Future = asyncio.run_coroutine_threadsafe(work, self._loop)
        return future.result(30)

    async def _close(self) -> None:
        self._server.close()
        await self._cut(set(self._writers))

    async def _cut(self, writers: set[asyncio.StreamWriter]) -> None:
        self.cuts += bool(writers)
        for writer in writers:
            if self._chance.random() < 0.5:
                writer.transport.abort()
            else:
                writer.close()
        self._writers -= writers

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self.accepts:
            writer.transport.abort()
            return
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
        pair = {writer, far_writer}
        self._writers |= pair
        left = [10**15 if self.longest is None else self._chance.randrange(1, self.longest)]
        left[0] += self._extra
        self._extra = 0
        self._left.append(left)
        await asyncio.gather(self._pump(reader, far_writer, pair, left), self._pump(far_reader, writer, pair, left))

    async def _pump(self, reader, writer, pair, left) -> None:
        try:
            while data := await reader.read(CHUNK_BYTES):
                writer.write(data[: left[0]])
                left[0] -= len(data)
                if left[0] <= 0:
                    break
                await writer.drain()
        except OSError:
            pass
        if pair <= self._writers:
            await self._cut(pair)
