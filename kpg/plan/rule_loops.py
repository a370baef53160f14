"""Recognise loops over sets, and render them as one operator of rules instead of rounds.

    reach  =  (starts + select(reach joined with edges)).distinct()          and any other sets, joins and antijoins

`kpg.plan.rule_products` reads the sets of a loop as rules. The operator that Datalog's recursions have
(`kpg.seminaive.maintained`) then keeps the least sets, which are the fixed point of the loop as long as no count from
outside is negative; while one is, the operator computes the rounds as they are written (`kpg.plan.loop_bodies`). It
reads all rows of the collections from outside, each by the columns that the loop reads. It needs times of one
coordinate. Inside another loop, and where it may follow few rows of a large relation, the loop stays a loop. On several
workers the sets are divided, or one worker derives all, as in `kpg.plan.saturations`.

`max_rounds` limits the levels of rows: of a loop with one set, these are its rounds, and of several sets, each set that
a row passes counts.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from kpg.columns.bind import bind
from kpg.columns.expression import ColumnReference
from kpg.columns.schema import INT64, Schema
from kpg.dataflow.channel import LocalPact, Pact
from kpg.operators import linear
from kpg.operators.complete_times import CompleteInput
from kpg.operators.maintain_rules import GivenPort, LoopRules, maintain_rules
from kpg.plan import nodes
from kpg.plan.lane_tests import ConstantLanes
from kpg.plan.loop_bodies import BodyWriter, needed_lanes
from kpg.plan.node_traversal import dependencies_first
from kpg.plan.renamed_nodes import renamed
from kpg.plan.rendered import Rendered
from kpg.plan.rule_products import MAX_NODES, NotRulesError, Product, ProductAtom, RuleReader, holds_each_once, known
from kpg.seminaive.counted_bodies import CountedBody
from kpg.seminaive.division import Division, division_of
from kpg.seminaive.multiset_fixpoint import RulePort
from kpg.seminaive.recursion_rules import (
    Literal,
    RecursionAtom,
    RecursionComparison,
    RecursionNegation,
    RecursionRule,
    RuleSystem,
    Term,
    rule,
)
from kpg.seminaive.rule_paths import can_maintain
from kpg.trace.batcher import Batcher

if TYPE_CHECKING:
    from kpg.columns.symbols import Symbols
    from kpg.plan.render import Renderer

MAX_FOLLOWED_ROWS: Final = 1_000_000  # to read more, for a recursion that starts elsewhere, costs more than lookups
REPLACES_LOOPS: Final = True  # False: all loops over sets stay loops


@dataclass(frozen=True, slots=True)
class LoopPort:
    """Columns of a collection from outside, as rows of a relation of the rules."""

    relation: int
    node: nodes.PlanNode
    columns: tuple[str, ...]

    @property
    def schema(self) -> Schema:
        """The columns."""
        return self.node.schema.select(self.columns)


@dataclass(frozen=True, slots=True)
class LeftSet:
    """The set that leaves a loop at a node, and its column for each column of the node."""

    relation: int
    schema: Schema
    columns: dict[str, str]


@dataclass(frozen=True, slots=True)
class RuleLoop:
    """A recognised loop."""

    system: RuleSystem
    ports: tuple[LoopPort, ...]
    body: CountedBody
    given: dict[nodes.PlanNode, tuple[str, ...]]  # the collections from outside, and the columns that the body reads
    widened: dict[nodes.PlanNode, set[str]]  # of these columns, those that must not hold the number of null
    results: tuple[int, ...]  # the relation of each result of the body
    left: dict[nodes.LeaveNode, LeftSet]
    schemas: tuple[Schema, ...]  # of the sets

    def inputs(self) -> list[nodes.PlanNode]:
        """Return the collections that the operator reads."""
        return list(dict.fromkeys(port.node for port in self.ports))


def recognise(loop: nodes.Loop, leaves: list[nodes.LeaveNode], symbols: Symbols) -> RuleLoop:
    """Return a loop as rules. Raise NotRulesError if it is none."""
    if loop.surrounding() or any(leave.loops for leave in leaves):
        raise NotRulesError("it is inside another loop")
    if loop.as_written is not None:
        raise NotRulesError(loop.as_written)
    if loop.stops:
        raise NotRulesError("it has a limit of rounds")
    body_nodes = [node for node in dependencies_first(leaves) if loop in node.loops]
    if any(isinstance(node, nodes.ConsolidateNode) for node in body_nodes):
        raise NotRulesError("a part of its body is consolidated")
    if len(body_nodes) > MAX_NODES:
        raise NotRulesError("its body is large")
    constants = ConstantLanes(symbols)
    views = {leave: set_of(leave.input, loop) for leave in leaves}
    results = list(dict.fromkeys(result for result, _ in views.values()))
    reader = RuleReader(loop, constants)
    sets = reader.read(results)
    writer = BodyWriter(loop, constants)
    body = writer.body(results)
    needed = needed_lanes(body)
    given = {node: columns_of(node, needed.get(number, set())) for node, number in writer.given.items()}
    builder = SystemBuilder(sets, given)
    system = builder.system(loop, constants)
    if not system.rules or not can_maintain(system):
        raise NotRulesError("no set of it follows from itself")
    left = {
        leave: LeftSet(builder.numbers[result], result.schema, columns) for leave, (result, columns) in views.items()
    }
    numbers, schemas = tuple(builder.numbers[node] for node in results), tuple(node.schema for node in sets)
    return RuleLoop(system, tuple(builder.ports), body, given, reader.widened, numbers, left, schemas)


def set_of(node: nodes.PlanNode, loop: nodes.Loop) -> tuple[nodes.ReduceNode, dict[str, str]]:
    """Return the set that a node of a loop is at the fixed point, and its column for each column of the node."""
    view, seen = renamed(node), set[nodes.PlanNode]()
    while isinstance(view.node, nodes.VariableNode) and view.node.loop is loop and view.node not in seen:
        seen.add(view.node)
        view = renamed(loop.definition(view.node)).after(view.columns)
    result = view.node
    if not isinstance(result, nodes.ReduceNode) or result.reduction.kind != "presence" or loop not in result.loops:
        raise NotRulesError("its result is no set of distinct rows")
    return result, view.columns


def columns_of(node: nodes.PlanNode, lanes: set[int]) -> tuple[str, ...]:
    """Return the columns in some lanes; at least one column."""
    schema = node.schema
    columns = [name for name in schema.names if lanes & set(schema.lanes_of((name,)))]
    if not columns:
        columns = [name for name in schema.names if schema.type_of(name).lanes == 1][:1]
    for name in columns:
        if schema.type_of(name).lanes > 1:
            raise NotRulesError(f"{name} is {schema.type_of(name)}, of several numbers")
    if not columns:
        raise NotRulesError("it reads rows without columns")
    return tuple(columns)


class SystemBuilder:
    """Numbers the relations of products, and turns the products into rules.

    First come the sets, then collections from outside that a rule without a set starts from, then those that are read.
    """

    def __init__(
        self, sets: dict[nodes.ReduceNode, list[Product]], given: dict[nodes.PlanNode, tuple[str, ...]]
    ) -> None:
        self.sets = sets
        self.given = given
        self.numbers: dict[nodes.PlanNode, int] = {node: number for number, node in enumerate(sets)}
        self.copies: dict[nodes.PlanNode, int] = {}
        self.ports: list[LoopPort] = []
        every = [product for products in sets.values() for product in products]
        recursive = [product for product in every if self._set_atoms(product)]
        self.reads = {atom.node for product in recursive for atom in product.atoms if atom.node not in sets}
        self.reads |= {atom.node for product in every for atom in product.negations}

    def system(self, loop: nodes.Loop, constants: ConstantLanes) -> RuleSystem:
        """Return all rules; the ports have the rows of their relations."""
        recursive: list[tuple[nodes.ReduceNode, Product, ProductAtom | None]] = []
        for node, products in self.sets.items():
            for product in products:
                if self._set_atoms(product):
                    recursive.append((node, product, None))
                elif (columns := self._start_columns(node, product)) is not None:
                    self.ports.append(LoopPort(self.numbers[node], product.atoms[0].node, columns))
                else:
                    start = product.atoms[0]
                    self.copies.setdefault(start.node, len(self.sets) + len(self.copies))
                    self.reads |= {atom.node for atom in product.atoms[1:]}
                    recursive.append((node, product, start))
        derived = len(self.sets) + len(self.copies)
        arities = [len(node.schema) for node in self.sets]
        for copied, number in self.copies.items():
            arities.append(len(self.given[copied]))
            self.ports.append(LoopPort(number, copied, self.given[copied]))
        for read in self.given:
            if read in self.reads:
                self.numbers[read] = len(arities)
                arities.append(len(self.given[read]))
                self.ports.append(LoopPort(self.numbers[read], read, self.given[read]))
        rules = tuple(self._rule(*each) for each in recursive)
        if {port.node for port in self.ports} != set(self.given):
            raise NotRulesError("a collection that it reads has no effect")
        return RuleSystem(
            loop.name, tuple(arities), derived, rules, loop.max_rounds, insert_only=False, held=constants.hold()
        )

    def _set_atoms(self, product: Product) -> list[ProductAtom]:
        return [atom for atom in product.atoms if atom.node in self.sets]

    def _start_columns(self, node: nodes.ReduceNode, product: Product) -> tuple[str, ...] | None:
        """Return the columns of a collection from outside whose rows are rows of a set; None if they are computed."""
        if len(product.atoms) != 1 or product.tests or product.negations:
            return None
        (atom,) = product.atoms
        names: dict[Term, str] = {term: name for name, term in atom.terms.items() if isinstance(term, str)}
        columns = tuple(names.get(known(product, name), "") for name in node.schema.names)
        if "" in columns or len(set(columns)) != len(columns) or len(names) != len(atom.terms):
            return None
        has_all = set(columns) == set(self.given[atom.node]) or atom.node in self.reads
        return columns if has_all else None

    def _rule(self, node: nodes.ReduceNode, product: Product, start: ProductAtom | None) -> RecursionRule:
        uses = Counter(term for term in product.columns.values())
        for atom in (*product.atoms, *product.negations):
            uses.update(atom.terms.values())
        for _, *sides in product.tests:
            uses.update(sides)
        body: list[Literal] = []
        for atom in product.atoms:
            number = self.copies[atom.node] if atom is start else self.numbers[atom.node]
            body.append(self._atom(number, atom, uses))
        body += [RecursionComparison(op, left, right) for op, left, right in product.tests]
        body += [RecursionNegation(self._atom(self.numbers[atom.node], atom, uses)) for atom in product.negations]
        head = RecursionAtom(self.numbers[node], tuple(known(product, name) for name in node.schema.names))
        return rule(head, tuple(body))

    def _atom(self, number: int, atom: ProductAtom, uses: Counter[Term | None]) -> RecursionAtom:
        """Return an atom of a relation, without the variables that occur nowhere else."""
        names = self.given.get(atom.node, atom.node.schema.names)
        terms = [atom.terms.get(name) for name in names]
        return RecursionAtom(number, tuple(term if isinstance(term, int) or uses[term] > 1 else None for term in terms))


def why_loops(root: nodes.PlanNode, symbols: Symbols) -> dict[str, str | None]:
    """Return the loops that a plan leaves, by name, and why rules do not replace them; None where they do."""
    leaves: dict[nodes.Loop, list[nodes.LeaveNode]] = {}
    for node in dependencies_first([root]):
        if isinstance(node, nodes.LeaveNode):
            leaves.setdefault(node.loop, []).append(node)
    return {loop.name: why_loop(loop, left, symbols) for loop, left in leaves.items()}


def why_loop(loop: nodes.Loop, leaves: list[nodes.LeaveNode], symbols: Symbols) -> str | None:
    """Return why rules do not replace a loop, whatever the sizes of its relations; None if they do."""
    try:
        recognise(loop, leaves, symbols)
    except NotRulesError as reason:
        return str(reason)
    return None


# Rendering


def rule_loop(renderer: Renderer, loop: nodes.Loop) -> RuleLoop | str:
    """Return the rules by which one operator can evaluate a loop here, or why it cannot."""
    if not REPLACES_LOOPS:
        return "rules do not replace loops"
    if renderer.context.depth != 1:
        return "times have several coordinates"
    leaves = [node for node in renderer.uses if isinstance(node, nodes.LeaveNode) and node.loop is loop]
    try:
        rules = recognise(loop, leaves, renderer.context.symbols)
    except NotRulesError as reason:
        return str(reason)
    rows = followed_rows(rules) if renderer.is_alone else 0  # each of several workers knows its own rows alone
    return rules if rows <= MAX_FOLLOWED_ROWS else f"it may follow few of {rows:,} rows"


def followed_rows(rules: RuleLoop) -> int:
    """Return the rows of the relations that rules read, if the recursion starts from others."""
    derived = rules.system.derived
    starts = bases_of([port.node for port in rules.ports if port.relation < derived])
    read = bases_of([port.node for port in rules.ports if port.relation >= derived])
    if starts.keys() & read.keys():
        return 0
    return sum(read.values())


def bases_of(collections: list[nodes.PlanNode]) -> dict[str, int]:
    """Return the relations that collections are computed from, with their numbers of rows."""
    sizes: dict[str, int] = {}
    for node in dependencies_first(collections):
        if isinstance(node, (nodes.RelationNode, nodes.InstalledNode)):
            base = node.owner.base()
            name = ", ".join(sorted(base.relations))
            sizes[name] = max(sizes.get(name, 0), base.handle.spine.rows)
    return sizes


def is_of_sets(loop: nodes.Loop) -> bool:
    """Return whether a loop has no reductions but sets."""
    definitions = [definition for definition in loop.definitions.values() if definition is not None]
    return not any(
        isinstance(node, nodes.ReduceNode) and loop in node.loops and node.reduction.kind != "presence"
        for node in dependencies_first(definitions)
    )


@dataclass(frozen=True, slots=True)
class RenderedRules:
    """A rendered loop: the stream of each derived relation, and the column by which its rows are placed."""

    rules: RuleLoop
    streams: list[Rendered]

    def left(self, renderer: Renderer, leave: nodes.LeaveNode) -> Rendered:
        """Return the rows that leave the loop at a node."""
        left = self.rules.left[leave]
        rendered = self.streams[left.relation]
        lanes = left.schema.lanes_of(left.columns.values())
        picked = [] if lanes == tuple(range(left.schema.width)) else [linear.PickStage(lanes)]
        schema = Schema.of({name: left.schema.type_of(of) for name, of in left.columns.items()})
        return renderer.reorder(renderer.add_stages(rendered, picked, "pick", schema), leave.schema)


def render_rules(renderer: Renderer, rules: RuleLoop) -> RenderedRules:
    """Render a recognised loop as one operator."""
    loop = rules.system.name
    how = "one operator: derives its sets by rules"
    if renderer.is_alone:
        renderer.dataflow.notes.append(f"{loop} is {how}")
        return render_with(renderer, rules, None)
    division = division_of(rules.system)
    division = None if division is None else with_complete_ports(rules, division)
    where = "one worker derives all rows: no column stays the same in all rules"
    if division is not None:
        columns = {left.schema.names[division.columns[left.relation] or 0]: None for left in rules.left.values()}
        where = f"each worker derives the rows of its values of {', '.join(columns)}"
    renderer.dataflow.notes.append(f"{loop} is {how}; {where}")
    return render_with(renderer, rules, division)


def with_complete_ports(rules: RuleLoop, division: Division) -> Division | None:
    """Return a division in which a worker can compute the loop itself for its values; None if there is none.

    It needs the rows of each collection from outside in one port: all rows, or those of its own values.
    """
    columns = list(division.columns)
    for node in rules.given:
        divided_by = {
            None if (column := columns[relation]) is None else port.columns[column]
            for relation, port in ports_of(rules, division)
            if port.node is node
        }
        if None in divided_by or len(divided_by) == 1:
            continue
        reads = [
            relation
            for relation, port in ports_of(rules, division)
            if port.node is node and relation >= division.system.derived
        ]
        if not reads:
            return None
        columns[reads[0]] = None
    return replace(division, columns=tuple(columns))


def ports_of(rules: RuleLoop, division: Division | None) -> list[tuple[int, LoopPort]]:
    """Return all ports, each with the relation of the (divided) system that it holds rows of."""
    if division is None:
        return [(port.relation, port) for port in rules.ports]
    return [
        (relation, port)
        for relation, source in enumerate(division.inputs)
        for port in rules.ports
        if port.relation == source
    ]


def render_with(renderer: Renderer, rules: RuleLoop, division: Division | None) -> RenderedRules:
    """Add the operator."""
    ports = ports_of(rules, division)
    system = rules.system if division is None else division.system
    columns: tuple[int | None, ...] = (None,) * len(system.arities) if division is None else division.columns
    parts = [port_rows(renderer, port, rules.widened.get(port.node, set())) for _, port in ports]
    inputs = [
        CompleteInput(part.stream, pact_of(renderer, part, columns[relation], division), Batcher(part.schema.width, 1))
        for (relation, _), part in zip(ports, parts, strict=True)
    ]
    given = tuple(given_port(node, names, ports, columns) for node, names in rules.given.items())
    owned_by = None if division is None else tuple(column or 0 for column in columns[: system.derived])
    loop_rules = LoopRules(
        system,
        tuple(RulePort(relation, holds_each_once(port.node, set(port.columns))) for relation, port in ports),
        rules.body,
        given,
        rules.results,
        owned_by,
    )
    schemas = schemas_of(rules, ports, len(system.arities))
    streams = maintain_rules(renderer.dataflow, loop_rules, inputs, schemas)
    rendered = [
        Rendered(stream, schemas[relation], None, placed=None if owned_by is None else (owned_by[relation],))
        for relation, stream in enumerate(streams)
    ]
    return RenderedRules(rules, rendered)


def port_rows(renderer: Renderer, port: LoopPort, widened: set[str]) -> Rendered:
    """Return the columns of a collection that a port reads. A row fails if a widened column holds null's number."""
    schema, symbols = port.schema, renderer.context.symbols
    rows = renderer.reorder(renderer.collection(port.node), schema)
    if widened.isdisjoint(port.columns):
        return rows
    columns = [ColumnReference(name) for name in port.columns]
    checked = [column.cast(INT64.optional()) if column.name in widened else column for column in columns]
    stage = linear.ComputeStage(tuple(bind(column, schema, symbols) for column in checked))
    return renderer.add_stages(rows, [stage], "select", schema)


def pact_of(renderer: Renderer, part: Rendered, column: int | None, division: Division | None) -> Pact:
    """Return how rows reach the operator."""
    if renderer.is_alone:
        return LocalPact()
    if division is None:
        return renderer.to_worker(part.schema, renderer.home_worker)
    return renderer.to_worker(part.schema, None) if column is None else renderer.by_lane(part, column)


def given_port(
    node: nodes.PlanNode, names: tuple[str, ...], ports: list[tuple[int, LoopPort]], columns: tuple[int | None, ...]
) -> GivenPort:
    """Return the port with the rows of a collection: if possible, one with all rows."""
    complete = [
        (columns[relation] is not None, number)
        for number, (relation, port) in enumerate(ports)
        if port.node is node and set(port.columns) == set(names)
    ]
    number = min(complete)[1]
    return GivenPort(number, node.schema.lanes_of(ports[number][1].columns), node.schema.width)


def schemas_of(rules: RuleLoop, ports: list[tuple[int, LoopPort]], relations: int) -> list[Schema]:
    """Return the schema of each relation."""
    schemas = dict(enumerate(rules.schemas)) | {relation: port.schema for relation, port in ports}
    return [schemas[relation] for relation in range(relations)]
