"""A host made of words: it hands events to a controller, does what the effects want, and writes down both.

The record is a real one in a temporary directory; only the clock is moved by hand. What happened can be read
as a script, one line an event (`>`) or an effect (`<`), and compared with one.
"""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING, Any, Final, Protocol

from interposition import InterposedFileSystem
from pi_team.mailbox import Mailbox
from pi_team.presence import this_process
from pi_team.session import Controller, Session
from pi_team.session.effects import (
    Answer,
    AskReadiness,
    Confirm,
    Deliver,
    Notify,
    Remember,
    Show,
    ShowState,
    Watch,
)
from pi_team.session.events import (
    Command,
    Complete,
    Confirmed,
    NotStarted,
    Poll,
    Readiness,
    Restore,
    Settled,
    Started,
    ToolCall,
    Typed,
)

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

    from pi_team.domain.model import Message
    from pi_team.presence import Process
    from pi_team.session.effects import Effect
    from pi_team.session.events import Event

READY: Final = Readiness(model=True, idle=True, queued=False, prompt=False, editor_empty=True)
BUSY: Final = Readiness(model=True, idle=False, queued=False, prompt=False, editor_empty=True)


class MovedClock:
    """All three clocks, moved by hand and by whoever sleeps."""

    def __init__(self) -> None:
        self.offset = 0.0
        self._start = time.time()

    def wall(self) -> float:
        return self._start + self.offset

    def running(self) -> float:
        return self.offset

    def monotonic(self) -> float:
        return self.offset

    def sleep(self, seconds: float) -> None:
        self.offset += seconds


class Host:
    """One session.

    Attributes:
        ready: what it answers when it is asked whether it is ready.
        starts: whether it starts the turns that are delivered to it.
        answers: whether it answers by itself at all; else a test gives the events.
        script: what happened.
        entry: what it was told to remember.
        shown: the last state that it was shown.
    """

    def __init__(
        self,
        path: Path,
        clock: MovedClock,
        name: str,
        *,
        cap: int = 0,
        process: Process | None = None,
        session: str = "",
        patience: float = 0.5,
    ) -> None:
        self.name = name
        self.fs = InterposedFileSystem()
        self.mailbox = Mailbox(path, filesystem=self.fs, clock=clock, patience=patience)
        self.session = Session(session or f"session-{name}", f"/{name}/project", process or this_process())
        self.clock = clock
        self.controller = Controller(self.mailbox, self.session, clock, cap)
        self.ready = READY
        self.starts = True
        self.answers = True
        self.yes = True
        self.script: list[str] = []
        self.effects: list[Effect] = []
        self.entry: dict[str, Any] | None = None
        self.shown: ShowState | None = None
        self.delivered: Deliver | None = None
        self._calls = itertools.count(1)

    # --- events

    def tell(self, event: Event) -> list[Effect]:
        """Hand over an event, answer what is asked meanwhile; all effects of it."""
        effects: list[Effect] = []
        waiting: list[Event] = [event]
        while waiting:
            event = waiting.pop(0)
            self.script.append(f"> {_event_line(event)}")
            for effect in self.controller.handle(event):
                self.script.append(f"< {_effect_line(effect)}")
                effects.append(effect)
                answer = self._answer(effect)
                if answer is not None:
                    waiting.append(answer)
        self.effects += effects
        return effects

    def _answer(self, effect: Effect) -> Event | None:
        if isinstance(effect, Remember):
            self.entry = effect.entry
        elif isinstance(effect, ShowState):
            self.shown = effect
        elif isinstance(effect, Deliver):
            self.delivered = effect
        if not self.answers:
            return None
        if isinstance(effect, AskReadiness):
            return self.ready
        if isinstance(effect, Deliver):
            return Started(effect.delivery) if self.starts else NotStarted(effect.delivery)
        if isinstance(effect, Confirm):
            return Confirmed(effect.question, yes=self.yes)
        return None

    def poll(self, seconds: float = 2.0) -> list[Effect]:
        """Let time pass, and poll."""
        self.clock.offset += seconds
        return self.tell(Poll())

    def team(self, line: str) -> list[Effect]:
        """A person's command."""
        return self.tell(Command(next(self._calls), line))

    def settle(
        self,
        text: str | None = "done",
        stop: str = "stop",
        error: str | None = None,
        files: tuple[str, ...] = (),
    ) -> list[Effect]:
        """The turn ends."""
        return self.tell(Settled(text, stop, error, files))

    def type(self, *files: str) -> list[Effect]:
        """A person types."""
        return self.tell(Typed(files))

    def restore(self, entry: object, *, goes_on: bool = False) -> list[Effect]:
        """The session begins with this entry, or goes on after a helper that died."""
        return self.tell(Restore(entry, goes_on))

    def tool(self, name: str, **params: Any) -> dict[str, Any]:
        """The model's call of a tool, answered."""
        effects = self.tell(ToolCall(next(self._calls), name, params))
        return [effect for effect in effects if isinstance(effect, Answer)][-1].result

    def completions(self, prefix: str) -> list[str]:
        """What may follow."""
        effects = self.tell(Complete(next(self._calls), prefix))
        items = [effect for effect in effects if isinstance(effect, Answer)][-1].result["items"]
        return [item["value"] for item in items]

    # --- looks

    @property
    def state(self) -> str:
        return self.controller.state

    def messages(self, team: str = "crew") -> tuple[Message, ...]:
        """All messages of a team."""
        return self.mailbox.look(team).messages

    def own_claims(self) -> list[Message]:
        """What is claimed under this session's alias."""
        assert self.shown is not None
        return [
            message
            for message in self.messages()
            if message.state == "processing" and message.recipient == self.shown.alias
        ]


class OpenHost(Protocol):
    def __call__(self, name: str, **options: Any) -> Host: ...


def kill(process: subprocess.Popen[bytes]) -> None:
    """End a process that is a session's, and wait until it has exited."""
    process.kill()
    process.communicate()


def notices(effects: list[Effect], *levels: str) -> list[str]:
    """What a person was told, of these levels or of all."""
    return [
        effect.text
        for effect in effects
        if isinstance(effect, Notify) and (not levels or effect.level in levels)
    ]


def of(kind: type[Any], effects: list[Effect]) -> list[Any]:
    """The effects of a kind."""
    return [effect for effect in effects if isinstance(effect, kind)]


def _event_line(event: Event) -> str:
    match event:
        case Command():
            line = f"/team {event.line}"
        case Readiness():
            line = "ready" if event.ready else "not ready"
        case Started():
            line = f"started {event.delivery}"
        case NotStarted():
            line = f"not started {event.delivery}"
        case Settled():
            line = f"settled {event.stop}"
        case ToolCall():
            line = f"tool {event.name}"
        case Confirmed():
            line = "yes" if event.yes else "no"
        case _:
            line = type(event).__name__.lower()
    return line


def _effect_line(effect: Effect) -> str:
    match effect:
        case Deliver():
            line = f"deliver {effect.delivery}: {effect.kind} {effect.details['subject']}"
        case Remember():
            entry = effect.entry
            line = "remember " + ("left" if "left" in entry else f"{entry['alias']} {entry['paused']}")
        case ShowState():
            line = f"state {effect.state}: {effect.widget}"
        case Show():
            line = f"show {effect.entry['kind']}: {effect.entry['title']}"
        case Notify():
            line = f"{effect.level}: {effect.text}"
        case Watch():
            line = f"watch {effect.team}"
        case Confirm():
            line = f"ask: {effect.title}"
        case Answer():
            line = "answer" if not effect.result else f"answer {sorted(effect.result)}"
        case AskReadiness():
            line = "ask readiness"
    return line
