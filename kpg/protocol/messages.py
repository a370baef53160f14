"""Every message of version 1, as it travels: requests, replies, and what is pushed.

A client asks with REQUESTS, each with an `id` of its choice, and gets one of REPLIES (or several `rows`, all but the
last with `more`) with that id; `error` is a reply to anything. PUSHED messages come by themselves. The first request
is `hello`. `docs/protocol.md` tells the story, `docs/protocol.schema.json` is made from these classes.
"""

from __future__ import annotations

from typing import Final

from kpg.protocol.replies import AnyReply
from kpg.protocol.requests import AnyRequest

VERSION: Final = 1

Message = AnyRequest | AnyReply
