"""A counterexample told in the words of the protocol: who did what, and what that left behind."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from spec.checker.values import FrozenMap, Value, show
from spec.checker.words import WORDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from spec.checker.tlc import Run, Step

State: TypeAlias = dict[str, Value]

# The variables whose entries tell who acted: the process, session or person of a step.
_ACTORS: Final = ("writer", "session", "process", "observer")

# The steps that happen to processes and are not theirs.
_EVENTS: Final = {"PowerCut", "SweepLeftOver", "Sweep", "SweepTomb", "Tick", "Sleep", "Depart"}


def _actor(before: State, after: State) -> str | None:
    """The process that a step belongs to: the one whose own state it changed, when it is one only."""
    for name in _ACTORS:
        old, new = before.get(name), after.get(name)
        if isinstance(old, FrozenMap) and isinstance(new, FrozenMap):
            changed = [key for key in new if old.get(key) != new[key]]
            if len(changed) == 1:
                return show(changed[0])
    return None


def _publication(state: State) -> str:
    """The record, the slots and the private names of a Publication state, in one line."""
    record, slots, private, files = state["record"], state["slot"], state["private"], state["file"]
    if not isinstance(slots, tuple) or not isinstance(private, frozenset) or not isinstance(files, FrozenMap):
        raise TypeError("not a state of Publication")

    def name(publication: Value) -> str:
        file = files[publication]
        if publication == 0 or not isinstance(file, FrozenMap):
            return "the new team"
        based = {-2: "an older peer's", 0: "on the new team"}.get(
            int(str(file["previous"])), f"on P{file['previous']}"
        )
        own = ", private name there" if publication in private else ""
        return f"P{publication} ({based}; operations {show(file['log'])}{own})"

    held = [f"{number}: {name(at)}" for number, at in enumerate(slots, 1) if at != -1]
    slots_held = "; ".join(held) or "all free"
    return f"record: {name(record)} | slots: {slots_held} | acknowledged {show(state['acked'])}"


def _changes(before: State, after: State) -> str:
    """The variables that a step changed, with only those entries of functions that differ."""
    parts = []
    for name, new in after.items():
        old = before.get(name)
        if old == new:
            continue
        if isinstance(old, FrozenMap) and isinstance(new, FrozenMap) and set(old) == set(new):
            differing = (f"{show(key)}: {show(new[key])}" for key in new if old[key] != new[key])
            parts.append(f"{name} [{', '.join(differing)}]")
        else:
            parts.append(f"{name} {show(new)}")
    return "; ".join(parts)


_WHOLE: Final[dict[str, Callable[[State], str]]] = {"Publication": _publication}


def tell(module: str, run: Run) -> Iterator[str]:
    """The lines of the story of a run that failed; a step that changed nothing visible says so itself."""
    words = WORDS.get(module, {})
    before: State = {}
    shown = ""
    for number, step in enumerate(run.trace, 1):
        yield f"{number:>3}. {_sentence(words, before, step)}"
        whole = _WHOLE.get(module)
        after = whole(step.state) if whole else _changes(before, step.state)
        if before == {} and whole is None:
            after = ""
        if after and after != shown:
            yield f"       {after}"
        shown, before = after, step.state
    if run.loop:
        yield f"     … {run.loop}"
    if run.violated:
        yield f"     → {run.violated} does not hold"


def _sentence(words: dict[str, str], before: State, step: Step) -> str:
    """What a step did, after its actor."""
    if not before:
        return "at the beginning"
    said = words.get(step.action, step.action)
    actor = None if step.action in _EVENTS else _actor(before, step.state)
    return f"{actor} {said}" if actor else said
