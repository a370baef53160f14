"""Check the calls of a program: that each functor, record and branch exists, with the right number of arguments."""

from __future__ import annotations

from kpg.errors import ProgramError, TypeMismatch, UndefinedName
from kpg.query.ir.constructors import BRANCH, CAST, NIL, RECORD, USER, Signatures
from kpg.query.ir.functors import FUNCTORS, MAX_ARGUMENTS
from kpg.query.ir.terms import CallTerm, Term
from kpg.query.source_text import did_you_mean, failure


def check_call(term: Term, signatures: Signatures) -> None:
    """Raise if a term calls an unknown functor or constructor, or one with a wrong number of arguments."""
    if not isinstance(term, CallTerm):
        return
    functor = signatures.of(term)
    if functor is None:
        raise unknown_call(term, signatures)
    if not functor.min_arguments <= len(term.arguments) <= functor.max_arguments:
        low, high = functor.min_arguments, functor.max_arguments
        expected = str(low) if low == high else f"{low} or more" if high == MAX_ARGUMENTS else f"{low} to {high}"
        what = f"{term.functor} takes {expected} arguments, not {len(term.arguments)}"
        raise failure(TypeMismatch, what, term.at, hint=declaration_of(term.functor, signatures))


def unknown_call(term: CallTerm, signatures: Signatures) -> ProgramError:
    """Return the error for a call of something that does not exist."""
    name = term.functor
    hint: str | None
    if name in (RECORD, NIL):
        what = "no record type is declared" if name == NIL else f"no record type has {len(term.arguments)} fields"
        return failure(TypeMismatch, what, term.at, hint="Declare one: .type Pair = [x: number, y: number].")
    if name.startswith(BRANCH):
        branches = [one.functor for one in signatures.constructors if one.functor != RECORD]
        hint = did_you_mean(name, branches) or "Declare it: .type Tree = Leaf {} | Node {x: number}."
        return failure(UndefinedName, f"no type has a branch {name}", term.at, hint=hint)
    if name.startswith(USER):
        hint = did_you_mean(name, signatures.functors) or f"Declare it: .functor {name[1:]}(x: number): number."
        return failure(UndefinedName, f"no functor {name} is declared", term.at, hint=hint)
    if name.startswith(CAST):
        type_ = name.removeprefix(CAST)
        hint = did_you_mean(type_, signatures.types)
        return failure(UndefinedName, f"no type is called {type_!r}", term.at, hint=hint)
    hint = did_you_mean(name, [known for known in FUNCTORS if known.isidentifier()])
    return failure(UndefinedName, f"no functor is called {name!r}", term.at, hint=hint)


def declaration_of(name: str, signatures: Signatures) -> str | None:
    """Return a hint with the declaration of a branch or user-defined functor."""
    for one in signatures.constructors:
        if one.functor == name and name != RECORD:
            fields = ", ".join(f"{field}: {kind}" for field, kind in zip(one.names, one.kinds, strict=True))
            return f"It is declared as {name[1:]} {{{fields}}}."
    if name in signatures.functors:
        functor = signatures.functors[name]
        return f"It is declared as .functor {functor.name}({', '.join(functor.arguments)}): {functor.result}."
    return None
