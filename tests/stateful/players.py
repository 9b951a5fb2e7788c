"""A process that plays, what befalls it, and the memberships that it was given."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from nursery import Actor
    from plain import Owner
    from possible import Attempt


@attrs.frozen
class Fate:
    """What befalls a process in the middle of an operation: at the n-th system call that fits."""

    how: str
    method: str = "*"
    name: str = "*"
    when: str = "before"
    nth: int = 1

    def __str__(self) -> str:
        done = {"kill": "killed", "stop": "stopped"}[self.how]
        number = f" number {self.nth}" * (self.nth > 1)
        call = "system call" if self.method == "*" else f"{self.method} {self.name}"
        return f"{done} {self.when} {call}{number}"

    @property
    def between_link_and_rename(self) -> bool:
        """Whether a publication is linked and not installed then."""
        place = (self.when, self.method, self.name)
        return place in {("before", "rename", "* -> state.json"), ("after", "link", "*.tmp -> *")}


@attrs.define(eq=False)
class Player:
    """A process. `midway` is what it was doing when it stopped; `died` the step in which it did."""

    name: str
    actor: Actor
    midway: Attempt | None = None
    died: int | None = None


@attrs.frozen
class Seat:
    """A membership that a process was given, whether or not that still holds."""

    player: Player
    team: str
    owner: Owner
    value: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.player.name} as {self.owner.alias}"
