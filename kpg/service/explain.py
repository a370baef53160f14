"""What a service has to say of a rule: what it reads, how it is or would be computed, who shares it, and why."""

from __future__ import annotations

from collections.abc import Iterable

from kpg.api.description import indexes
from kpg.api.explain_dataflow import size
from kpg.query.explain_program import explain as explain_program
from kpg.query.ir.compile import compile
from kpg.service.asking import Asking
from kpg.service.interest import Interest
from kpg.service.sharing import Builder

DERIVED = "derived anew: constants and joins reach into it, and only the indexes of base relations are shared"
REUSED = 'with sharing="trunk" it is reused'


def explain(builder: Builder, asking: Asking, interests: Iterable[Interest], name: str) -> str:
    """All that there is to say of a rule or relation."""
    relation = builder.relation(name)
    shown = ", ".join(f"{column.name}: {column.kind}" for column in relation.columns)
    lines = [f"{name}({shown})", *described(builder, name), ""]
    lines += boundaries(builder, name)
    lines += living(builder, asking, [each for each in interests if each.name == name], name)
    lines += shared_indexes(builder, name)
    if name in builder.rules.by_name:
        lines += ["", explain_program(compile(builder.program(name)))]
    return "\n".join(lines)


def described(builder: Builder, name: str) -> list[str]:
    """Where something comes from."""
    facts = builder.catalog.facts.get(name)
    if facts is not None:
        by = f" by {', '.join(facts.declared.key)}" if facts.declared.key else ""
        return [f"  a base relation, {facts.declared.semantics}{by}"]
    text = builder.rules.find(name)
    lines = [f"  registered in {text.language}, text {text.number}"]
    parameters = builder.parameters(name)
    if parameters is not None:
        lines.append(f"  parameters: {', '.join(f'{each.name}: {each.kind}' for each in parameters.columns[1:])}")
    return lines


def boundaries(builder: Builder, name: str) -> list[str]:
    """What is done at each rule that this one reads."""
    if name not in builder.rules.by_name:
        return []
    lines = []
    for each in sorted(builder.trunks(name)):
        trunk = builder.answers.get((each, bool(builder.trunks(each)))) or builder.answers.get((each, False))
        state = f"{REUSED}, and it is there now ({trunk.users} users)" if trunk is not None else f"{REUSED}, and built"
        lines.append(f"at {each}: {DERIVED}; {state}")
    texts, outside = builder.rules.needed([name])
    lines.append(f"needs {', '.join(outside) or 'nothing'}, through {len(texts)} text{'s' if len(texts) != 1 else ''}")
    return lines


def living(builder: Builder, asking: Asking, interests: list[Interest], name: str) -> list[str]:
    """The dataflows that are there, and for whom."""
    lines = []
    for reuse in (False, True):
        answer = builder.answers.get((name, reuse))
        if answer is not None:
            others = answer.users - len(answer.interests)
            how = "on trunks" if reuse else "from base relations"
            lines.append(f"one answer for all, {how}: {len(answer.interests)} interests, {others} queries built on it")
    for key, tenancy in asking.tenancies.items():
        if key[0] == name:
            lines.append(f"one dataflow for arguments ({', '.join(key[1:])}): {tenancy.users} tenants")
            lines += [f"  {line}" for line in tenancy.reason.splitlines()]
    for key in sorted(asking.failed):
        if key[0] == name:
            lines.append(f"for arguments ({', '.join(key[1:])}): each on its own, since together they failed")
    alone = [each for each in interests if each.sharing == "nothing"]
    if alone:
        lines.append(f"dataflows of their own: {len(alone)}")
    return lines or ["nothing of it is built: nobody is interested"]


def shared_indexes(builder: Builder, name: str) -> list[str]:
    """The indexes of what it needs that are there now."""
    _, outside = builder.rules.needed([name])
    found = []
    for index in indexes(builder.db):
        if not index.private and index.name.partition(" by ")[0] in outside:
            held = f"{index.rows:,} rows, {size(index.nbytes)}"
            found.append(f"index {index.name}: {held}, read by {len(index.shared_by)}")
    return found
