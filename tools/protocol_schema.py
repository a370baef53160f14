"""Write docs/protocol.schema.json from the classes of messages.

python tools/protocol_schema.py
"""

from __future__ import annotations

import json
from pathlib import Path

from kpg.protocol.json_schema import schema

PAGE = Path(__file__).parent.parent / "docs" / "protocol.schema.json"


def text() -> str:
    """The schema as it is kept."""
    return json.dumps(schema(), indent=1) + "\n"


if __name__ == "__main__":
    PAGE.write_text(text())
    print(PAGE.name)
