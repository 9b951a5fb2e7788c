"""What the parts of the controller share: the membership, the pause, the work, and the effects to come."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import attrs

from pi_team.session import bounds, entries, wording
from pi_team.session.effects import Answer, Effect, Notify, Remember, ShowState
from pi_team.session.machine import SessionMachine
from pi_team.text import cut, harmless

if TYPE_CHECKING:
    from pi_team.clocks import Clock
    from pi_team.domain.model import Membership, Message, Report, Status
    from pi_team.errors import PiTeamError
    from pi_team.mailbox import Mailbox
    from pi_team.session.effects import Level, WorkKind
    from pi_team.session.entries import Pause, Session
    from pi_team.session.events import Call

_RANK: Final[dict[Pause | None, int]] = {None: 0, "budget": 1, "recovery": 2, "explicit": 3}
_VARYING: Final = re.compile(r"[0-9a-f]{4,}(?:-[0-9a-f]{4,})*|[0-9]+")
"""Ids and numbers, which may differ each time that the same thing goes wrong."""


@attrs.define
class Counts:
    """What the last look at the team counted: teammates online, messages queued, results awaited."""

    online: int = 0
    queued: int = 0
    awaited: int = 0


@attrs.define
class Work:
    """What the session works on, from the claim until that is durably settled or given back.

    Attributes:
        delivery: names it to the host.
        kind: what it is.
        message: what is claimed; None for a review.
        started: the host said that its turn runs.
        overtaken: the files so far, where a person typed before the host had said so.
        report: how it ended, from then on until the record has it.
    """

    delivery: str
    kind: WorkKind
    message: Message | None
    started: bool = False
    overtaken: tuple[str, ...] | None = None
    report: Report | None = None


class Context:
    """The controller's memory.

    Args:
        mailbox: the teams.
        session: the host's session.
        clock: the clocks.
        cap: automatic turns without a person; 0 for any number.
    """

    def __init__(self, mailbox: Mailbox, session: Session, clock: Clock, cap: int) -> None:
        self.mailbox = mailbox
        self.session = session
        self.clock = clock
        self.machine = SessionMachine()
        self.cap = cap
        self.turns = 0
        self.work: Work | None = None
        self.pause: Pause | None = None
        self.endangered = False
        self.counts = Counts()
        self._owner: Membership | None = None
        self._outbox: list[Effect] = []
        self._answers: list[Effect] = []
        self._remembered: dict[str, Any] | None = None
        self._shown: ShowState | None = None
        self._troubles: dict[str, None] = {}

    # --- effects

    def emit(self, effect: Effect) -> None:
        """Want this done, after what was wanted before."""
        self._outbox.append(effect)

    def answer(self, call: Call, result: dict[str, Any]) -> None:
        """Answer the host, after everything else that is wanted."""
        self._answers.append(Answer(call, result))

    def notify(self, level: Level, text: str) -> None:
        """Tell the person something; what peers may have written in it is made harmless."""
        self.emit(Notify(level, cut(harmless(text, multiline=True), bounds.NOTICE_CHARACTERS)))

    def trouble(self, error: PiTeamError, doing: str) -> None:
        """Tell of an error, once for each distinct one."""
        text = wording.trouble(error, doing)
        key = _VARYING.sub("#", text)
        if key in self._troubles:
            return
        if len(self._troubles) >= bounds.TROUBLES_REMEMBERED:
            del self._troubles[next(iter(self._troubles))]
        self._troubles[key] = None
        self.notify("warning", text)

    def remember(self) -> None:
        """Have the membership written down as it is now, where that is not what was written last."""
        entry = entries.LEFT
        if self._owner is not None:
            entry = entries.written(
                self._owner, self.session.id, self.pause, endangered=self.endangered, turns=self.turns
            )
        if entry != self._remembered:
            self._remembered = entry
            self.emit(Remember(entry))

    def drain(self) -> list[Effect]:
        """The effects so far, then the state where it has changed, then answers."""
        shown = self._state()
        if shown != self._shown:
            self._shown = shown
            self.emit(shown)
        effects = [*self._outbox, *self._answers]
        self._outbox, self._answers = [], []
        return effects

    def _state(self) -> ShowState:
        if self._owner is None:
            return ShowState(self.machine.state, None, None, None, None, tools=False)
        team, alias = self._owner.team, self._owner.alias
        return ShowState(
            self.machine.state,
            team,
            alias,
            wording.widget(team, alias, self.doing, self.counts),
            wording.rules(team, alias),
            tools=True,
        )

    # --- the membership

    @property
    def owner(self) -> Membership:
        """The membership; asked for only where there is one."""
        assert self._owner is not None  # noqa: S101 - the machine's state says so
        return self._owner

    @property
    def is_joined(self) -> bool:
        """Whether the session is a member."""
        return self._owner is not None

    def own(self, owner: Membership | None) -> None:
        """Hold this membership from now on, or none."""
        self._owner = owner
        if owner is None:
            self.work = None
            self.pause = None
            self.endangered = False
            self.counts = Counts()
            self._troubles.clear()

    def rename(self, owner: Membership) -> None:
        """Go on with the same membership under another alias."""
        self._owner = owner
        self.remember()

    def kept(self, entry: object) -> None:
        """Know what is written down already."""
        if isinstance(entry, dict):
            self._remembered = entry

    # --- pauses

    def hold(self, pause: Pause) -> None:
        """Claim nothing from now on, or from the end of the present work on; the weightier reason stays."""
        if _RANK[pause] > _RANK[self.pause]:
            self.pause = pause
        if self.machine.state == "receiving":
            self.machine.fire("pause")

    def lift(self) -> None:
        """Let nothing pause the session any more."""
        self.turns = 0
        self.pause = None
        if self.machine.state == "paused":
            self.machine.fire("resume")

    @property
    def is_exhausted(self) -> bool:
        """Whether the cap on automatic turns is reached."""
        return 0 < self.cap <= self.turns

    def stop_at_cap(self) -> None:
        """Pause where the cap on automatic turns is reached and nothing else pauses, and say so."""
        if self.is_exhausted and self.pause is None:
            self.hold("budget")
            self.notify("warning", wording.exhausted(self.turns))

    @property
    def status(self) -> Status:
        """What the heartbeats say."""
        if self.work is not None and (self.work.report is None or self.pause is None):
            return "busy"
        return "idle" if self.pause is None else "paused"

    @property
    def doing(self) -> str:
        """The same for the person, in a few words."""
        return wording.doing(self.machine.state, self.work, self.pause)
