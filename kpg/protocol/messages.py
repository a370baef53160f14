"""The messages of version 1 of the server's protocol.

A client sends REQUESTS, each with an `id` of its choice. The server answers with one of REPLIES (or several `rows`, all
but the last with `more`) under that id; `error` can answer any request. PUSHED messages come without a request. The
first request is `hello`. `docs/protocol.md` explains them; `docs/protocol.schema.json` is generated from these classes.
"""

from __future__ import annotations

from typing import Final

from kpg.protocol.replies import AnyReply
from kpg.protocol.requests import AnyRequest

VERSION: Final = 1

ProtocolMessage = AnyRequest | AnyReply
