"""The schema on the page is the one the classes make, and every message on the page of the protocol obeys it."""

import json
import re
from pathlib import Path

import jsonschema

from kpg.protocol.json_schema import schema
from kpg.protocol.message_codec import decode
from kpg.protocol.replies import PUSHED, REPLIES
from kpg.protocol.requests import REQUESTS

DOCS = Path(__file__).parent.parent.parent / "docs"


def messages() -> list[str]:
    """Every line of JSON in the blocks of the page."""
    page = (DOCS / "protocol.md").read_text()
    blocks = re.findall(r"^```json\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line.strip()]


def test_the_schema_on_the_page_is_fresh():
    assert json.loads((DOCS / "protocol.schema.json").read_text()) == schema(), "run python tools/protocol_schema.py"


def test_the_schema_is_valid():
    jsonschema.Draft202012Validator.check_schema(schema())


def test_every_message_on_the_page_obeys_the_schema_and_the_decoder():
    check = jsonschema.Draft202012Validator(schema())
    for text in messages():
        check.validate(json.loads(text))
        decode(text, REQUESTS | REPLIES | PUSHED)


def test_every_kind_of_message_is_on_the_page():
    """A14.3: the page shows each request, reply and pushed message."""
    shown = {json.loads(text)["type"] for text in messages()}
    assert shown == {kind.kind for kind in REQUESTS | REPLIES | PUSHED}
