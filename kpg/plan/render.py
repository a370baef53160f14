"""Rendering: turn plan nodes into the operators of one dataflow.

Each node is rendered once, in the scope of the innermost loop it depends on, and entered into the loops that use it. A
stateful operator reads arrangements, and nodes that need the same collection by the same key share one. Every worker
renders the same nodes into the same operators, in the same order.

Dependencies are rendered first, from an explicit stack, so plans may be thousands of nodes deep. Others may run between
two of them (kpg/columns/building_turns.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from kpg.columns.schema import Schema
from kpg.dataflow.graph import Dataflow
from kpg.operators.small_loop import small_loop
from kpg.operators.source import Source
from kpg.plan import nodes
from kpg.plan.chains import render_chain
from kpg.plan.component_loops import render_components, why_components_loop
from kpg.plan.component_stars import render_worker_components
from kpg.plan.constant_rows import feed_values, render_values
from kpg.plan.delta_queries import render_delta_source, render_extend
from kpg.plan.dependencies import RenderDependency, dependencies_of
from kpg.plan.history_nodes import render_history
from kpg.plan.joins import pairs_of, render_join
from kpg.plan.least_value_loops import (
    NOT_DIVIDED,
    LeastValueLoop,
    least_value_loop,
    render_least_values,
    strategy_of,
)
from kpg.plan.loop_errors import collect_errors, masks_of
from kpg.plan.loops import OpenVariable, close_variable, render_variable
from kpg.plan.node_traversal import count_uses, inputs_of
from kpg.plan.placement import common_placement
from kpg.plan.reductions import render_reduction
from kpg.plan.rendered import Context, Rendered, RenderedArrangement
from kpg.plan.rule_loops import RenderedRules, RuleLoop, is_of_sets, render_rules, rule_loop
from kpg.plan.saturations import render_saturation
from kpg.plan.scopes import Scopes
from kpg.plan.streams import Streams
from kpg.plan.views import View


class Renderer(Streams):
    """Renders nodes into one dataflow."""

    def __init__(self, dataflow: Dataflow, context: Context, *roots: nodes.PlanNode) -> None:
        super().__init__(dataflow, context)
        dataflow.make_unit = small_loop
        self.scopes = Scopes(dataflow)
        self.uses = count_uses(roots)
        self.relations: dict[nodes.PlanNode, str] = {}  # the relation of a program that each node belongs to
        self.imported: list[Any] = []
        self._unretained: list[Any] = []  # the imported arrangements, until the dataflow counts as their user
        self.created: list[Any] = []  # handles of shared indexes that this rendering has installed or keeps
        self.streams: list[Any] = []  # inputs that keep no rows
        self._collections: dict[nodes.PlanNode, Rendered] = {}
        self._arrangements: dict[tuple[object, tuple[str, ...]], RenderedArrangement] = {}
        self._saturations: dict[nodes.SaturationSpec, list[Rendered]] = {}
        self._least_values: dict[nodes.LeaveNode, LeastValueLoop | str] = {}
        self._added: dict[nodes.PlanNode, list[nodes.PlanNode]] = {}  # the nodes that its operator reads besides
        self._rules: dict[nodes.Loop, RuleLoop | None] = {}
        self._rendered_rules: dict[nodes.Loop, RenderedRules] = {}
        self._component_operators: dict[nodes.LeaveNode, bool] = {}
        self._open: list[OpenVariable] = []
        self._constants: list[tuple[nodes.ValuesNode, Source]] = []  # to be fed when all imports are known
        self._pairs: dict[nodes.JoinNode, list[tuple[View, View]]] = {}
        self._imports_of: dict[object, set[object]] = {}  # the arrangements that each node imports
        if dataflow.building is not None:
            self._keep_sources()

    def _keep_sources(self) -> None:
        """Keep the relations that the plans read, since others run meanwhile. Build whole if one has no trace yet."""
        owners = [node.owner for node in self.uses if isinstance(node, (nodes.RelationNode, nodes.InstalledNode))]
        if all(getattr(owner, "is_arranged", True) for owner in owners):
            self.created += [owner.base().share() for owner in owners]
        else:
            self.dataflow.building = None

    # Called by the code that renders nodes

    def collection(self, node: nodes.PlanNode) -> Rendered:
        """Return the stream of a node, in the node's own scope."""
        if node not in self._collections:
            self._satisfy(RenderDependency(node))
        return self._collections[node]

    def arranged(self, node: nodes.PlanNode, keys: tuple[str, ...]) -> RenderedArrangement:
        """Return the node arranged by some columns, in the node's own scope."""
        if (node, keys) not in self._arrangements:
            self._satisfy(RenderDependency(node, keys))
        return self._arrangements[node, keys]

    def pairs_of(self, node: nodes.JoinNode) -> list[tuple[View, View]]:
        """Return the pairs of views that a join consists of; chosen once, so that they are the ones it depends on."""
        pairs = self._pairs.get(node)
        if pairs is None:
            pairs = self._pairs[node] = pairs_of(node, self.is_alone)
        return pairs

    def collection_in(self, node: nodes.PlanNode, loop: nodes.Loop | None) -> Rendered:
        """Return the stream of a node, entered into a loop."""
        return self.scopes.enter(self.collection(node), loop)

    def arranged_in(self, node: nodes.PlanNode, keys: tuple[str, ...], loop: nodes.Loop | None) -> RenderedArrangement:
        """Return the arrangement of a node, entered into a loop: same trace, same batches, more time coordinates."""
        return self.scopes.enter_arranged(self.arranged(node, keys), loop)

    def join(self, node: nodes.JoinNode, columns: tuple[tuple[int, str], ...], schema: Schema) -> Rendered:
        """Render a join that produces the given columns, each a side and a name on that side."""
        return render_join(self, node, columns, schema)

    def is_rendered(self, node: nodes.PlanNode) -> bool:
        """Return whether the stream of a node already exists."""
        return node in self._collections

    def is_arranged(self, node: nodes.PlanNode, keys: tuple[str, ...]) -> bool:
        """Return whether an arrangement of a node by some columns already exists in this dataflow."""
        return (node, keys) in self._arrangements

    def least_values_of(self, node: nodes.LeaveNode) -> LeastValueLoop | None:
        """Return the loop that a node leaves if one operator keeps its least values; note it for `explain`."""
        if node.graph is not None:
            return None
        if node not in self._least_values:
            loop = self._least_values[node] = least_value_loop(self, node)
            if not isinstance(loop, str):
                self._add_inputs(node, loop)
                self.dataflow.notes.append(f"{node.loop.name} is {strategy_of(loop, self.is_alone)}")
        loop = self._least_values[node]
        return None if isinstance(loop, str) else loop

    def _add_inputs(self, leave: nodes.LeaveNode, loop: LeastValueLoop) -> None:
        """Note the nodes that an operator reads and the plan does not have: they belong to the node of the operator."""
        added: list[nodes.PlanNode] = []
        stack = list(loop.inputs())
        while stack:
            node = stack.pop()
            if node not in self.uses:
                self.uses[node] = 2  # more than one: it is not rendered as a part of its reader
                added.append(node)
                stack += inputs_of(node)
        self._added[leave] = added
        if leave in self.relations:
            self.relations |= dict.fromkeys(added, self.relations[leave])

    def rules_of(self, node: nodes.LeaveNode) -> RuleLoop | None:
        """Return the loop that a node leaves if one operator evaluates it by rules; note for `explain` why not."""
        if node.graph is not None or self.least_values_of(node) is not None:
            return None
        if node.loop not in self._rules:
            why_not = self._least_values[node]
            rules = NOT_DIVIDED if why_not == NOT_DIVIDED else rule_loop(self, node.loop)  # it divides the joined rows
            self._rules[node.loop] = None if isinstance(rules, str) else rules
            if isinstance(rules, str):
                reason = rules if is_of_sets(node.loop) else why_not
                self.dataflow.notes.append(f"{node.loop.name} is a loop: {reason}")
        return self._rules[node.loop]

    def is_component_operator(self, node: nodes.LeaveNode) -> bool:
        """Return whether one operator maintains the components that a node leaves a loop with; note it."""
        if node.graph is None:
            return False
        if node not in self._component_operators:
            reason = why_components_loop(self, node)
            self._component_operators[node] = reason is None
            how = "one operator: maintains the components of a graph" if reason is None else f"a loop: {reason}"
            self.dataflow.notes.append(f"{node.loop.name} is {how}")
        return self._component_operators[node]

    def is_private(self, node: nodes.PlanNode) -> bool:
        """Return whether only one node reads this one, so that it can be rendered as part of its reader."""
        return self.uses[node] == 1 and not self.is_rendered(node)

    def remember(self, node: nodes.PlanNode, keys: tuple[str, ...], arrangement: RenderedArrangement) -> None:
        """Register an arrangement of a node that is a by-product of rendering it."""
        self._arrangements[node, keys] = arrangement

    def release(self) -> None:
        """Release the handles of the builder."""
        super().release()
        for handles in (self._unretained, self.created):
            while handles:
                handles.pop().release()

    def retain_imports(self) -> None:
        """Count the dataflow as a user of the arrangements that it imports, until it is dropped."""
        while self._unretained:
            self.dataflow.on_drop.append(self._unretained.pop(0).release)

    def finish(self) -> None:
        """Close the loops, let imports begin, and feed constant rows. Nothing can be rendered afterwards but errors."""
        self.dataflow.building = None  # imports begin, so nothing may be left from here on
        while self._open:
            close_variable(self, self._open.pop(0))
        self.attach_imports()
        while self._constants:
            feed_values(self, *self._constants.pop())

    def errors_of(self, *roots: nodes.PlanNode) -> list[Rendered | None]:
        """Return for each node the errors that it depends on, as one stream outside all loops; None if none can fail.

        Nodes that depend on the same errors share one stream.
        """
        if not self.errors:
            return [None for _ in roots]
        owners = list(self.errors)
        numbers = {owner: number for number, owner in enumerate(owners)}
        masks = masks_of(roots, lambda node: sum(1 << numbers[owner] for owner in set(self._error_owners(node))))
        streams: dict[int, Rendered | None] = {}
        for mask in masks:
            if mask not in streams:
                chosen = [owner for owner in owners if owner is None or mask >> numbers[owner] & 1]
                streams[mask] = collect_errors(self, [part for owner in chosen for part in self.errors[owner]])
        return [streams[mask] for mask in masks]

    def _error_owners(self, node: nodes.PlanNode) -> Iterator[object]:
        """Return the owners of the errors of one node: itself, and the arrangements that it imports."""
        for own in (node, *self._added.get(node, ())):
            yield from (owner for owner in (own, *self._imports_of.get(own, ())) if owner in self.errors)

    # Dependencies

    def _satisfy(self, dependency: RenderDependency) -> None:
        """Render a dependency after its own dependencies, in their order."""
        stack, building = [(dependency, False)], self.dataflow.building
        while stack:
            if building is not None:
                building.pause()
            current, ready = stack.pop()
            if self._has(current):
                continue
            if ready:
                self._render_dependency(current)
            else:
                stack.append((current, True))
                stack += [(inner, False) for inner in reversed(dependencies_of(self, current)) if not self._has(inner)]

    def _has(self, dependency: RenderDependency) -> bool:
        if dependency.keys is None:
            return dependency.node in self._collections
        return dependency in self._arrangements

    def _render_dependency(self, dependency: RenderDependency) -> None:
        node, keys = dependency
        outer, self.error_owner = self.error_owner, node
        before = len(self.dataflow.operators)
        if keys is None:
            self._collections[node] = self._render(node)
        else:
            self._arrangements[node, keys] = self._arrange_node(node, keys)
        self.error_owner = outer
        self._note_relation(node, before)

    def _note_relation(self, node: nodes.PlanNode, before: int) -> None:
        """Note for the operators after the first `before` that they compute the relation that a node belongs to."""
        relation = self.relations.get(node)
        if relation is not None:
            for operator in self.dataflow.operators[before:]:
                operator.relations = operator.relations or (relation,)

    # One node, after its dependencies

    def _render(self, node: nodes.PlanNode) -> Rendered:
        match node:
            case nodes.ConcatNode():
                parts = [self.reorder(self.collection_in(inner, node.scope()), node.schema) for inner in node.inputs]
                stream = parts[0].stream.concat(*[part.stream for part in parts[1:]])
                return replace(
                    parts[0], stream=stream, consolidated=False, placed=common_placement(part.placed for part in parts)
                )
            case nodes.ValuesNode():
                rendered, source = render_values(self, node)
                self._constants.append((node, source))
                return rendered
            case nodes.WorkerComponentsNode():
                return render_worker_components(self, node)
            case nodes.ConsolidateNode():
                return self.consolidate(self.collection(node.input))
            case nodes.VariableNode():
                rendered, variable = render_variable(self, node)
                self._open.append(variable)
                return rendered
            case nodes.LeaveNode() if self.is_component_operator(node):
                return render_components(self, node)
            case nodes.LeaveNode() if (least_values := self.least_values_of(node)) is not None:
                return render_least_values(self, least_values)
            case nodes.LeaveNode() if (rules := self.rules_of(node)) is not None:
                return self._left_by_rules(node, rules)
            case nodes.LeaveNode():
                return self.scopes.leave(self.collection_in(node.input, node.loop), node.scope())
            case nodes.JoinNode():
                return render_join(self, node, node.columns, node.schema)
            case nodes.DeltaSourceNode():
                return render_delta_source(self, node)
            case nodes.ExtendNode():
                return render_extend(self, node)
            case nodes.ReduceNode():
                return render_reduction(self, node)
            case nodes.SaturatedNode():
                return self._saturated(node)
            case nodes.ChosenRowsNode() | nodes.NumberedRowsNode():
                return render_history(self, node)
            case nodes.ArrangeNode():
                inner = node if node.is_of_relation() else node.input
                return self._stream_of(self.arranged(inner, node.keys))
            case nodes.RelationNode() | nodes.InstalledNode():
                return self._stream_of(self._import(node.owner.base()))
            case nodes.StreamNode():
                self.streams.append(node.owner)
                return self.rendered(node.owner.open_source(self.dataflow), node.schema, None)
        return render_chain(self, node)

    def _saturated(self, node: nodes.SaturatedNode) -> Rendered:
        """Return one relation of a recursion; a single operator derives all of its relations."""
        derived = self._saturations.get(node.saturation)
        if derived is None:
            derived = self._saturations[node.saturation] = render_saturation(self, node.saturation)
        return replace(derived[node.relation], schema=node.schema)

    def _left_by_rules(self, node: nodes.LeaveNode, rules: RuleLoop) -> Rendered:
        """Return one result of a loop; a single operator derives all of them."""
        rendered = self._rendered_rules.get(node.loop)
        if rendered is None:
            rendered = self._rendered_rules[node.loop] = render_rules(self, rules)
        return rendered.left(self, node)

    def _stream_of(self, arrangement: RenderedArrangement) -> Rendered:
        """Return the batches of an arrangement as a stream."""
        stream, placed = arrangement.arranged.stream, arrangement.placed
        return Rendered(stream, arrangement.schema, arrangement.loop, consolidated=True, placed=placed)

    def published(self, node: nodes.PlanNode, keys: tuple[str, ...]) -> RenderedArrangement:
        """Return the node arranged for readers that do not join it; its rows need not move to another worker."""
        self.error_owner = node
        if isinstance(node, (nodes.RelationNode, nodes.InstalledNode)):
            owner = node.owner.sorted_by(keys)
            return self.arranged(node, keys) if owner is None else self._import(owner)
        if isinstance(node, nodes.ArrangeNode) or (node, keys) in self._arrangements:
            return self.arranged(node, keys)
        rendered = self.collection(node)
        by_product = self._arrangements.get((node, keys))  # a reduction registers the arrangement of its output
        if by_product is not None:
            return by_product
        before = len(self.dataflow.operators)
        arranged = self.arrange_in_place(rendered, keys, f"arrange {', '.join(keys)}")
        self._note_relation(node, before)
        return arranged

    def _arrange_node(self, node: nodes.PlanNode, keys: tuple[str, ...]) -> RenderedArrangement:
        if isinstance(node, nodes.ArrangeNode):
            if node.is_of_relation():
                return self._import(self._shared_index(node.input, keys))
            return self.arranged(node.input, keys)
        if isinstance(node, (nodes.RelationNode, nodes.InstalledNode)):
            owner = node.owner.arranged_by(keys)
            if owner is not None:
                return self._import(owner)
        rendered = self.collection(node)
        by_product = self._arrangements.get((node, keys))  # a reduction registers the arrangement of its output
        if by_product is not None:
            return by_product
        return self.arrange_rendered(rendered, keys, f"arrange {', '.join(keys)}")

    def _shared_index(self, node: Any, keys: tuple[str, ...]) -> Any:
        """Return an arrangement of a relation that other queries read too; install it if there is none yet."""
        found = node.owner.arranged_by(keys)
        if found is None:
            handle = node.owner.arrange(*keys)
            self.created.append(handle)  # until the dataflow counts as its user
            found = handle.installed
        return found

    def _import(self, owner: Any) -> RenderedArrangement:
        imported = self._arrangements.get((owner, ()))
        if imported is None:
            arranged = self.import_from(owner.name, owner.publisher, owner.handle)
            imported = RenderedArrangement(arranged, owner.schema, None, None, owner.in_place)
            self._arrangements[owner, ()] = imported
            self.imported.append(owner)
            self._unretained.append(owner.share())
            if owner.errors is not None:
                errors = owner.errors
                name = f"errors of {owner.name}"
                outer, self.error_owner = self.error_owner, owner
                self.add_errors(self.import_from(name, errors.publisher, errors.handle).stream, None)
                self.error_owner = outer
        self._imports_of.setdefault(self.error_owner, set()).add(owner)
        return imported
