"""Add operators to streams, and arrange streams: the part of rendering that does not depend on plan nodes.

While a dataflow is built, handles keep its traces alive; after `release()`, only operators hold them. `errors` collects
the error streams of fallible operators, each in its scope, by the node or arrangement that they belong to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from kpg.algebra.frontier import Frontier
from kpg.columns.schema import BINARY, Schema, Type
from kpg.dataflow.channel import BroadcastPact, ExchangePact, LocalPact, Pact
from kpg.dataflow.graph import Dataflow, Stream
from kpg.operators import linear
from kpg.operators.arrange import Arranged, Insert, Publisher, arrange
from kpg.operators.complete_times import CompleteInput
from kpg.operators.consolidate import Consolidate
from kpg.operators.exchange import send_to, sender_of, split_by_key, split_by_lanes, whole_updates
from kpg.operators.half_join import Floor
from kpg.operators.import_arrangement import AddedImport
from kpg.operators.picked_lanes import PickedLanes
from kpg.operators.routed_filter import routed_filter
from kpg.operators.stages_of_few import StagesOfFew
from kpg.operators.worker_loads import WorkerLoads
from kpg.plan import nodes
from kpg.plan.placement import OneWorker, Placed, after_stages, common_placement
from kpg.plan.rendered import Context, Rendered, RenderedArrangement
from kpg.trace.batcher import Batcher
from kpg.trace.handle import TraceHandle
from kpg.trace.spine import Spine

ERRORS = Schema.of({"error": BINARY})


class Streams:
    """Adds operators to one dataflow."""

    def __init__(self, dataflow: Dataflow, context: Context) -> None:
        self.dataflow = dataflow
        self.context = context
        self.errors: dict[object, list[Rendered]] = {}
        self.error_owner: object = None  # the node being rendered
        self.floor = Floor((0,) * context.depth)
        self._handles: list[TraceHandle] = []
        self._imports: list[AddedImport] = []  # that have not begun

    @property
    def is_alone(self) -> bool:
        """Whether this worker has all rows."""
        return self.dataflow.worker.peers == 1

    @property
    def home_worker(self) -> int:
        """The worker of what only one worker does in this dataflow; that of other dataflows may be another."""
        return self.dataflow.id % self.dataflow.worker.peers

    # Streams

    def rendered(
        self,
        stream: Stream,
        schema: Schema,
        loop: nodes.Loop | None,
        *,
        consolidated: bool = False,
        placed: Placed = None,
    ) -> Rendered:
        """Return a stream in a scope with named lanes."""
        return Rendered(stream, schema, loop, 1, consolidated, placed)

    def reorder(self, rendered: Rendered, schema: Schema) -> Rendered:
        """Return the same rows with the lanes that `schema` names, in its order."""
        if rendered.schema.names == schema.names:
            return rendered if rendered.schema is schema else replace(rendered, schema=schema)
        lanes = rendered.schema.lanes_of(schema.names)
        return self.add_stages(rendered, [linear.PickStage(lanes)], "pick", schema)

    def add_stages(
        self,
        rendered: Rendered,
        stages: Sequence[linear.LinearStage],
        label: str,
        schema: Schema,
        meanings: Sequence[Schema] = (),
    ) -> Rendered:
        """Add a linear operator of some stages, and the stream of its errors if it can fail.

        `meanings` has the schema that each stage reads, where that is not the schema of the stream.
        """
        if not stages:
            return rendered if rendered.schema is schema else replace(rendered, schema=schema)
        fallible = any(stage.fallible for stage in stages)
        failures = self.context.failures if fallible else None
        routed = routed_filter(rendered.stream, linear.required_constants(stages))
        schemas = meanings or [rendered.schema] * len(stages)
        operator = linear.Linear(label, stages, failures, schemas, routed=routed, few=StagesOfFew(stages))
        depth = rendered.stream.depth
        stream = self.dataflow.add(operator, [(rendered.stream, LocalPact())], depth=depth, ports=2 if fallible else 1)
        if fallible:
            self.add_errors(Stream(((operator, 1),), depth), rendered.loop)
        width = next((stage.width for stage in reversed(stages) if stage.width), rendered.width)
        return Rendered(stream, schema, rendered.loop, width, placed=after_stages(rendered.placed, stages))

    def add_errors(self, stream: Stream, loop: nodes.Loop | None) -> None:
        """Add a stream to the errors of the node being rendered."""
        self.errors.setdefault(self.error_owner, []).append(Rendered(stream, ERRORS, loop))

    def consolidate(self, rendered: Rendered) -> Rendered:
        """Consolidate the updates of each time, on the worker where equal rows meet."""
        operator = Consolidate("consolidate", rendered.schema.width, rendered.stream.depth, rendered.width)
        operator.schema = rendered.schema
        placed = rendered.placed
        pact: Pact = LocalPact()
        if placed is None:
            width = rendered.schema.width
            pact, placed = self._by_key(rendered.schema, width), tuple(range(width))
        stream = self.dataflow.add(operator, [(rendered.stream, pact)], depth=rendered.stream.depth)
        return replace(rendered, stream=stream, consolidated=False, placed=placed)

    def to_worker(self, schema: Schema, worker: int | None) -> Pact:
        """Return the pact that sends all rows to one worker; to each of them if it is None."""
        if self.dataflow.worker.peers == 1:
            return LocalPact()
        return ExchangePact(send_to(schema, worker, self.dataflow.worker.index), schema.symbolic_lanes())

    def gather(self, parts: Sequence[Rendered]) -> CompleteInput:
        """Return the rows of some streams as an input of an operator that runs on one worker, and reads multisets."""
        stream, schema = parts[0].stream.concat(*[part.stream for part in parts[1:]]), parts[0].schema
        placed, peers = common_placement(part.placed for part in parts), self.dataflow.worker.peers
        pact, batcher = self.to_worker(schema, self.home_worker), Batcher(schema.width, stream.depth)
        if isinstance(placed, tuple) and placed and peers > 1:
            owner_of = sender_of(placed, schema, self.context.symbols, peers)
            batcher = WorkerLoads(schema.width, stream.depth, owner_of)
        return CompleteInput(stream, pact, batcher)

    def divide(self, parts: Sequence[Rendered], lanes: tuple[int, ...] | None) -> CompleteInput:
        """Return the rows of some streams as an input of an operator that runs on each worker, and reads multisets.

        Each worker gets the rows whose values in some lanes it owns; all rows if `lanes` is None.
        """
        stream, schema = parts[0].stream.concat(*[part.stream for part in parts[1:]]), parts[0].schema
        pact: Pact = LocalPact()
        if lanes is None:
            pact = self.to_worker(schema, None)
        elif any(part.placed != lanes for part in parts):
            types = tuple(schema.lane_types()[lane] for lane in lanes)
            pact = self.by_lanes(schema, lanes, (0,) * len(lanes), types)
        return CompleteInput(stream, pact, Batcher(schema.width, stream.depth))

    def place(self, rendered: Rendered, placed: Placed) -> Rendered:
        """Send each row to the worker that owns the key in some lanes, unless it is there or any worker will do."""
        if not isinstance(placed, tuple) or rendered.placed == placed:
            return rendered
        schema = rendered.schema
        types = tuple(schema.lane_types()[lane] for lane in placed)
        pact = self.by_lanes(schema, placed, (0,) * len(placed), types)
        depth = rendered.stream.depth
        stream = self.dataflow.add(linear.Linear("place", []), [(rendered.stream, pact)], depth=depth)
        return Rendered(stream, schema, rendered.loop, rendered.width, placed=placed)

    def to_one_worker(self, schema: Schema) -> Pact:
        """Return the pact that sends all rows to the worker of the empty key."""
        return self._by_key(schema, 0)

    def _by_key(self, schema: Schema, key_lanes: int) -> Pact:
        if self.dataflow.worker.peers == 1:
            return LocalPact()
        return ExchangePact(split_by_key(schema, key_lanes, self.context.symbols), schema.symbolic_lanes())

    def by_lanes(
        self, schema: Schema, lanes: tuple[int, ...], constants: tuple[int, ...], types: tuple[Type, ...]
    ) -> Pact:
        """Return the pact that sends a tuple to the worker of its key in an arrangement.

        The key consists of some lanes of the tuple, or of constants where the lane is -1.
        """
        if self.dataflow.worker.peers == 1:
            return LocalPact()
        return ExchangePact(split_by_lanes(lanes, constants, types, self.context.symbols), schema.symbolic_lanes())

    def by_lane(self, rendered: Rendered, lane: int) -> Pact:
        """Return the pact that sends each row to the worker that owns its value in a lane."""
        if rendered.placed == (lane,):
            return LocalPact()
        return self.by_lanes(rendered.schema, (lane,), (0,), (rendered.schema.lane_types()[lane],))

    # Arrangements

    def arrange_rendered(self, rendered: Rendered, keys: tuple[str, ...], name: str) -> RenderedArrangement:
        """Arrange a stream by some of its columns; the others follow in their order."""
        in_place = rendered.placed == rendered.schema.lanes_of(keys)
        return self._arrange(rendered, keys, name, in_place)

    def arrange_in_place(self, rendered: Rendered, keys: tuple[str, ...], name: str) -> RenderedArrangement:
        """Arrange a stream that no join reads: rows stay on their worker if equal rows are on the same worker."""
        placed, by = rendered.placed, rendered.schema.lanes_of(keys)
        if isinstance(placed, tuple) and 0 < len(placed) < len(by) and placed == by[: len(placed)]:
            placed = tuple(range(len(placed)))
        elif not isinstance(placed, OneWorker):
            return self.arrange_rendered(rendered, keys, name)
        return replace(self._arrange(rendered, keys, name, True), in_place=None if self.is_alone else placed)

    def _arrange(
        self, rendered: Rendered, keys: tuple[str, ...], name: str, in_place: bool, pact: Pact | None = None
    ) -> RenderedArrangement:
        """Arrange a stream. Rows that are not in place are sent to the worker of their key, or as the pact says."""
        rest = tuple(column for column in rendered.schema.names if column not in keys)
        schema = rendered.schema.select(keys + rest)
        in_place |= self.dataflow.worker.peers == 1
        if rendered.consolidated and rendered.schema.names == schema.names and in_place:
            return self.insert_batches(rendered, schema.width_of(len(keys)), name)
        picked = None
        if in_place and rendered.stream.depth == 1 and rendered.schema.names != schema.names:
            picked = PickedLanes(rendered.schema.lanes_of(schema.names))
        else:
            rendered = self.reorder(rendered, schema)
        operator, arranged = arrange(
            self.dataflow,
            name,
            rendered.stream,
            LocalPact() if in_place else pact or self._by_key(schema, schema.width_of(len(keys))),
            key_lanes=schema.width_of(len(keys)),
            lanes=schema.width,
            width=rendered.width,
            policy=self.context.merge_policy,
            picked=picked,
        )
        operator.schema = schema
        self.keep_handle(arranged.handle)
        return RenderedArrangement(arranged, schema, rendered.loop, operator)

    def arrange_where_they_are(self, rendered: Rendered) -> RenderedArrangement:
        """Arrange a stream by no columns, each row on the worker where it is."""
        return self._arrange(rendered, (), "arrange in place", in_place=True)

    def arrange_everywhere(self, rendered: Rendered) -> RenderedArrangement:
        """Arrange a stream by no columns, all rows on every worker."""
        pact = BroadcastPact(whole_updates, rendered.schema.symbolic_lanes())
        return self._arrange(rendered, (), "arrange everywhere", False, pact)

    def insert_batches(self, rendered: Rendered, key_lanes: int, name: str) -> RenderedArrangement:
        """Keep a stream of sorted batches in a trace, without sorting them again."""
        depth, lanes = rendered.stream.depth, rendered.schema.width
        spine = Spine(key_lanes, lanes, depth, rendered.width, self.context.merge_policy)
        handle = TraceHandle(spine, f"building {name}", Frontier.start(depth))
        operator = Insert(name, spine)
        operator.schema = rendered.schema
        stream = self.dataflow.add(operator, [(rendered.stream, LocalPact())], depth=depth)
        self.keep_handle(handle)
        arranged = Arranged(stream, handle, key_lanes, lanes, rendered.width, depth)
        return RenderedArrangement(arranged, rendered.schema, rendered.loop, operator)

    def import_from(self, name: str, publisher: Publisher, handle: TraceHandle) -> Arranged:
        """Import an arrangement of another dataflow."""
        added = AddedImport(self.dataflow, name, publisher, handle)
        self.keep_handle(added.arranged.handle)
        self._imports.append(added)
        return added.arranged

    def attach_imports(self) -> None:
        """Let all imports begin now."""
        for added in self._imports:
            self.floor.raise_to(added.attach())
        self._imports.clear()

    def keep_handle(self, handle: TraceHandle) -> None:
        """Keep a trace alive during building, until operators hold it."""
        self._handles.append(handle)

    def release(self) -> None:
        """Release the handles of the builder."""
        for handle in self._handles:
            handle.release()
        self._handles.clear()
