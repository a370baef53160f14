"""Components: declarations that are copied, under a name of their own, by each instantiation.

    .comp Graph<T> { .decl edge(x: T, y: T) }
    .comp Paths<T> : Graph<T> { .decl path(x: T, y: T)  path(x, y) :- edge(x, y). }
    .init p = Paths<number>            declares p.edge and p.path, and the rule p.path(x, y) :- p.edge(x, y).

The parser keeps the tokens of a component's body. Each instantiation parses them again, with names that the instance
resolves, so errors show the position in the component's text. A relation or type that the component does not declare
is looked up in the instance around it, and at last in the program; so are rules for such relations. Type parameters
stand for types and for components.

All components are checked (bases, parameters, overriding), also those without instances. The cost is that of parsing
the expanded program, which is limited: see the constants below.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kpg.errors import ProgramError, UndefinedName
from kpg.query.datalog.lexer import Token
from kpg.query.datalog.names import Names
from kpg.query.ir.program import Relation
from kpg.query.source_text import Position, did_you_mean, failure

if TYPE_CHECKING:
    from kpg.query.datalog.program_builder import ProgramBuilder

MAX_INSTANTIATION_DEPTH = 100  # each level takes several Python frames
MAX_INSTANCES = 10_000  # a component that instantiates two others doubles their number with each level
MAX_CLIENT_TOKENS = 300_000  # of texts that clients send to a server: as many as the longest text can have
MAX_EXPANDED_TOKENS = 2_000_000  # the largest public programs have some 300,000; parsing this many takes ten seconds


@dataclass(frozen=True, slots=True)
class ComponentReference:
    """A component with actual parameters, as in `Graph<number>`: a base, or what an instance is made from."""

    name: str
    arguments: tuple[str, ...]
    at: Position


@dataclass(frozen=True, slots=True)
class Instantiation:
    """`.init g = Graph<number>`."""

    name: str
    reference: ComponentReference
    at: Position


@dataclass(slots=True, eq=False)
class Component:
    """A declared component. `outline` holds the statements of the body with the names as written."""

    name: str
    parameters: tuple[str, ...]
    bases: tuple[ComponentReference, ...]
    body: list[Token]
    outline: ProgramBuilder
    at: Position
    enclosing: Component | None = None

    def declared_relations(self) -> Iterator[str]:
        """Yield the names of the relations that the body declares."""
        return (relation.name for relation in self.outline.relations)

    def ruled_relations(self) -> set[str]:
        """Return the names of the relations that rules or facts of the body derive."""
        rules = self.outline.rules
        return {head.relation for rule in rules for head in rule.heads} | {fact.relation for fact in self.outline.facts}


@dataclass(slots=True)
class ComponentPart:
    """The body of one component within an instance: of its component, or of a base."""

    component: Component
    parameters: Mapping[str, str]  # formal -> actual
    overridden: frozenset[str]  # relations whose rules and facts are left out


@dataclass(slots=True)
class Instance:
    """An instance: its prefix, the names it declares, its parts in order, and the instances among them by name."""

    prefix: str
    around: Instance | None
    relations: set[str] = field(default_factory=set)
    types: set[str] = field(default_factory=set)
    parts: list[ComponentPart | Instance] = field(default_factory=list)
    nested: dict[str, list[Instance]] = field(default_factory=dict)

    def add(self, name: str, instance: Instance) -> None:
        """Add a nested instance."""
        self.parts.append(instance)
        self.nested.setdefault(name, []).append(instance)

    def owners(self, name: str) -> tuple[list[Instance], str]:
        """Return the nested instances that `a.b.name` refers to, and `name`; of a name alone, this instance."""
        instances, (*path, last) = [self], name.split(".")
        for step in path:
            instances = [inner for instance in instances for inner in instance.nested.get(step, ())]
        return instances, last

    def has_relation(self, name: str) -> bool:
        """Return whether the instance, or a nested one that the name refers to, declares a relation."""
        instances, last = self.owners(name)
        return any(last in instance.relations for instance in instances)

    def has_type(self, name: str) -> bool:
        """Return whether the instance, or a nested one that the name refers to, declares a type."""
        instances, last = self.owners(name)
        return any(last in instance.types for instance in instances)


class InstanceNames(Names):
    """Resolve the names in one part of an instance: first in the instance, then in the instances around it."""

    def __init__(self, instance: Instance, parameters: Mapping[str, str]) -> None:
        self.instance = instance
        self.parameters = parameters
        self.resolved_relations: dict[str, str] = {}
        self.resolved_types: dict[str, str] = {}

    def relation(self, name: str) -> str:
        """Return the declared name of a relation."""
        if name not in self.resolved_relations:
            self.resolved_relations[name] = self.resolve(name, Instance.has_relation)
        return self.resolved_relations[name]

    def type(self, name: str) -> str:
        """Return the declared name of a type, or the actual parameter."""
        if name not in self.resolved_types:
            self.resolved_types[name] = self.resolve(self.parameters.get(name, name), Instance.has_type)
        return self.resolved_types[name]

    def resolve(self, name: str, declares: Callable[[Instance, str], bool]) -> str:
        """Return the name that the innermost instance around gives to what it declares as `name`."""
        around: Instance | None = self.instance
        while around is not None and not declares(around, name):
            around = around.around
        return name if around is None else around.prefix + name

    def declared(self, name: str) -> str:
        """Return the name of a declaration in the body."""
        return self.instance.prefix + name


class ComponentExpansion:
    """Turns the instantiations of a program into statements."""

    def __init__(self, builder: ProgramBuilder) -> None:
        self.builder = builder
        self.max_tokens = MAX_EXPANDED_TOKENS if builder.files.allowed else MAX_CLIENT_TOKENS
        self.instances = 0
        self.expanded_tokens = 0

    def bodies(self) -> Iterator[tuple[list[Token], Names, set[str]]]:
        """Check all components; then yield, for each part of each instance, what is to be parsed.

        That is the body, the names in it, and the relations whose rules and facts are left out.
        """
        for component in all_components(self.builder.components):
            self.check(component)
        for instantiation in self.builder.instantiations:
            yield from bodies_of(self.instance(instantiation, None, {}, None, 1))

    # Checks

    def check(self, component: Component) -> None:
        """Raise an error if the component refers to unknown components, inherits from itself or overrides wrongly."""
        bound = {name for around in scopes(component) for name in around.parameters}
        for reference in (*component.bases, *(init.reference for init in component.outline.instantiations)):
            if reference.name not in bound:
                check_arguments(reference, self.find(reference, reference.name, component))
        bases = self.all_bases(component)
        if any(reference.name in bound for base in (component, *bases) for reference in base.bases):
            return  # relations to override may come from a parameter
        self.check_overrides(component, bases)

    def all_bases(self, component: Component) -> list[Component]:
        """Return the bases of a component and theirs, without those that are parameters; refuse cycles."""
        bases: list[Component] = []
        queue = [(component, reference) for reference in component.bases]
        while queue:
            user, reference = queue.pop(0)
            base = self.lookup(reference.name, user)
            if base is component:
                raise cyclic(component, reference)
            if base is not None and base not in bases:
                bases.append(base)
                queue += [(base, further) for further in base.bases]
        return bases

    def check_overrides(self, component: Component, bases: list[Component]) -> None:
        """Raise an error for an override of a relation that is not inherited or not overridable."""
        for name, at in component.outline.overrides.items():
            if name in component.declared_relations():
                what = f"{component.name} overrides its own relation {name!r}"
                hint = "Only inherited relations can be overridden: remove .override, or the declaration."
                raise failure(ProgramError, what, at, hint=hint)
            owners = [base for base in bases if name in base.declared_relations()]
            if any(name not in owner.outline.overridable for owner in owners):
                what = f"relation {name!r} cannot be overridden"
                hint = f"Declare it as overridable in {owners[0].name}: .decl {name}(...) overridable"
                raise failure(ProgramError, what, at, hint=hint)
            inherited = {
                relation for base in bases for relation in (*base.declared_relations(), *base.ruled_relations())
            }
            if name not in inherited:
                what = f"no base of {component.name} has a relation called {name!r}"
                raise failure(UndefinedName, what, at, hint=did_you_mean(name, inherited))

    # Lookup

    def lookup(self, name: str, user: Component | None) -> Component | None:
        """Return the component that `name` stands for inside `user`: nested in it or its bases, or further outside."""
        for around in scopes(user):
            if name in around.outline.components:
                return around.outline.components[name]
            for base in around.bases:
                inherited = self.builder.components.get(base.name)
                if inherited is not None and inherited is not around and name in inherited.outline.components:
                    return inherited.outline.components[name]
        return self.builder.components.get(name)

    def find(self, reference: ComponentReference, name: str, *users: Component | None) -> Component:
        """Return the component with this name that the first of `users` to know it means; raise UndefinedName."""
        for user in users:
            component = self.lookup(name, user)
            if component is not None:
                return component
        known = {
            *self.builder.components,
            *(name for user in users for around in scopes(user) for name in around.outline.components),
        }
        raise failure(UndefinedName, f"no component is called {name!r}", reference.at, hint=did_you_mean(name, known))

    # Instances

    def instance(
        self,
        instantiation: Instantiation,
        around: Instance | None,
        parameters: Mapping[str, str],
        user: Component | None,
        depth: int,
    ) -> Instance:
        """Return the instance of an instantiation inside another instance, whose component is `user`."""
        if depth > MAX_INSTANTIATION_DEPTH:
            what = f"components are instantiated more than {MAX_INSTANTIATION_DEPTH} deep"
            hint = "A component must not instantiate itself."
            raise failure(ProgramError, what, instantiation.at, hint=hint)
        self.instances += 1
        if self.instances > MAX_INSTANCES:
            what = f"components have more than {MAX_INSTANCES:,} instances"
            raise failure(ProgramError, what, instantiation.at, hint="Instantiate fewer components.")
        reference = instantiation.reference
        component = self.find(reference, parameters.get(reference.name, reference.name), user)
        actual = with_arguments(parameters, reference, component)
        instance = Instance(f"{around.prefix if around else ''}{instantiation.name}.", around)
        self.add_nested(instance, component, actual, component, depth)
        self.add_parts(instance, component, actual, frozenset(), (component,), user, depth)
        return instance

    def add_nested(
        self, instance: Instance, component: Component, parameters: Mapping[str, str], user: Component, depth: int
    ) -> None:
        """Add the instances that a component's body instantiates."""
        for nested in component.outline.instantiations:
            instance.add(nested.name, self.instance(nested, instance, parameters, user, depth + 1))

    def add_parts(
        self,
        instance: Instance,
        component: Component,
        parameters: Mapping[str, str],
        overridden: frozenset[str],
        derived: tuple[Component, ...],
        user: Component | None,
        depth: int,
    ) -> None:
        """Add the bodies of a component's bases, then its own; `derived` are the components that led to it."""
        for reference in component.bases:
            base = self.find(reference, parameters.get(reference.name, reference.name), component, user)
            if base in derived:
                raise cyclic(base, reference)
            actual = with_arguments(parameters, reference, base)
            self.add_nested(instance, base, actual, base, depth)
            hidden = overridden | component.outline.overrides.keys()
            self.add_parts(instance, base, actual, hidden, (*derived, base), user, depth)
        instance.relations.update(component.declared_relations())
        instance.types.update(component.outline.types.declared)
        instance.parts.append(ComponentPart(component, parameters, overridden))
        self.expanded_tokens += len(component.body)
        if self.expanded_tokens > self.max_tokens:
            what = f"the instances of components have more than {self.max_tokens:,} words and symbols"
            raise failure(ProgramError, what, component.at, hint="Instantiate fewer components.")


def bodies_of(instance: Instance) -> Iterator[tuple[list[Token], Names, set[str]]]:
    """Yield the bodies of an instance, those of nested instances in their place."""
    for part in instance.parts:
        if isinstance(part, Instance):
            yield from bodies_of(part)
        else:
            names = InstanceNames(instance, part.parameters)
            yield part.component.body, names, {names.relation(name) for name in part.overridden}


def all_components(components: Mapping[str, Component]) -> Iterator[Component]:
    """Yield the components and those nested in them."""
    for component in components.values():
        yield component
        yield from all_components(component.outline.components)


def scopes(component: Component | None) -> Iterator[Component]:
    """Yield a component and those around it, the innermost first."""
    while component is not None:
        yield component
        component = component.enclosing


def with_arguments(
    parameters: Mapping[str, str], reference: ComponentReference, component: Component
) -> Mapping[str, str]:
    """Return the actual parameters inside a component, given those outside of it.

    A component that a parameter stands for may be named without parameters of its own: it then has those outside.
    """
    if not reference.arguments and reference.name in parameters:
        return parameters
    check_arguments(reference, component)
    arguments = (parameters.get(argument, argument) for argument in reference.arguments)
    return {**parameters, **dict(zip(component.parameters, arguments, strict=True))}


def check_arguments(reference: ComponentReference, component: Component) -> None:
    """Raise an error if a reference has another number of parameters than the component."""
    if len(reference.arguments) != len(component.parameters):
        declared = f"{component.name}<{', '.join(component.parameters)}>" if component.parameters else component.name
        what = f"{component.name} has {len(component.parameters)} parameters, not {len(reference.arguments)}"
        raise failure(ProgramError, what, reference.at, hint=f"It is declared as {declared}.")


def cyclic(component: Component, reference: ComponentReference) -> ProgramError:
    """Return the error for a component that inherits from itself."""
    hint = "Remove one of the bases on the cycle."
    return failure(ProgramError, f"component {component.name!r} inherits from itself", reference.at, hint=hint)


def check_clashes(
    types: Iterable[str],
    relations: Iterable[Relation],
    components: Mapping[str, Component],
    instantiations: Iterable[Instantiation],
) -> None:
    """Raise ProgramError if a relation, component or instance has the name of a type, or of another one of them."""
    taken = dict.fromkeys(types, "type")
    declared = [(relation.name, "relation", relation.at) for relation in relations]
    declared += [(component.name, "component", component.at) for component in components.values()]
    declared += [(instantiation.name, "instance", instantiation.at) for instantiation in instantiations]
    for name, what, at in declared:
        if taken.setdefault(name, what) != what:
            hint = "Choose another name for one of them."
            raise failure(ProgramError, f"{what} {name!r} has the name of a {taken[name]}", at, hint=hint)
