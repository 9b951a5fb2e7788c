"""The loop beside a Pi session: lines in, events; effects, lines out (docs/session.md, "The bridge").

One thread works; another only reads. While a member, it polls every two seconds and whenever the record
changes. It ends when its input ends: the host is gone then, and the other members notice that by themselves.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import traceback
from typing import TYPE_CHECKING, Any, Final

from pi_team._version import __version__
from pi_team.clocks import SystemClock
from pi_team.errors import InternalError, PiTeamError, ProtocolError, ProtocolVersionError
from pi_team.hosts.pi import translation
from pi_team.hosts.pi.watcher import Watcher
from pi_team.hosts.pi.wire import Inbox, Notice, Outlet, Refused, Reply, Request
from pi_team.limits import HEARTBEAT_INTERVAL
from pi_team.mailbox import Mailbox
from pi_team.presence.process import exited, process_of
from pi_team.session import Controller, Session
from pi_team.session.bounds import automatic_turns
from pi_team.session.effects import Answer, AskReadiness, Confirm, Deliver, Watch
from pi_team.session.events import Confirmed, NotStarted, Poll, Shutdown, Started

if TYPE_CHECKING:
    from collections.abc import Callable

    from pi_team.hosts.pi.wire import Identifier, Incoming
    from pi_team.session.effects import Effect
    from pi_team.session.events import Event

IDLE_LIFETIME: Final = 60.0
"""Seconds without a request after which a bridge that is no member ends by itself."""
_GRACE: Final = 0.5
"""Seconds that the present operation may take to end when the input has ended."""


class Bridge:
    """One session's translation.

    Args:
        inbox: the lines of the host.
        outlet: the lines to it.
    """

    def __init__(self, inbox: Inbox, outlet: Outlet) -> None:
        self._inbox = inbox
        self._outlet = outlet
        self._clock = SystemClock()
        self._controller: Controller | None = None
        self._session: Session | None = None
        self._mailbox: Mailbox | None = None
        self._watch: Watcher | None = None
        self._questions: dict[Identifier, Callable[[dict[str, Any] | None], Event | None]] = {}
        self._calls: set[Identifier] = set()
        self._numbered = 0
        self._events: list[Event] = []
        self._delivering = False
        self._asking: Identifier | None = None
        self._ask_again = False
        self._closed = False
        self._told_of_defect = False
        self._requested = self._polled = self._clock.monotonic()

    def run(self, ended: threading.Event) -> None:
        """Work until the host is gone, or nobody has asked for anything for a while."""
        while not ended.is_set():
            incoming, changed = self._inbox.take(self._rest())
            if ended.is_set():
                return
            if incoming is not None:
                self._receive(incoming)
            if self._is_joined and (changed or self._rest() <= 0) and not self._poll():
                return
            if not self._is_joined and self._rest() <= 0:
                return

    @property
    def _is_joined(self) -> bool:
        return self._controller is not None and self._controller.is_joined

    def _rest(self) -> float:
        """Seconds until the next poll, or until the end."""
        now = self._clock.monotonic()
        if self._is_joined:
            return max(self._polled + HEARTBEAT_INTERVAL - now, 0.0)
        if self._calls:  # a person has a question to answer
            return IDLE_LIFETIME
        return max(self._requested + IDLE_LIFETIME - now, 0.0)

    def _poll(self) -> bool:
        """Poll; False where the host's process has exited."""
        self._polled = self._clock.monotonic()
        if self._session is not None and exited(self._session.process):
            return False
        self._handle(Poll())
        return True

    # --- in

    def _receive(self, incoming: Incoming) -> None:
        match incoming:
            case Request():
                self._requested = self._clock.monotonic()
                self._serve(incoming)
            case Reply():
                question = self._questions.pop(incoming.id, None)
                event = None if question is None else question(incoming.result)
                if event is not None:
                    self._handle(event)
            case Notice(method="readiness"):
                self._handle(translation.readiness(incoming.params))
            case Notice():
                self._refuse(None, ProtocolError(f"there is no notification {incoming.method[:40]!r}"))
            case Refused():
                self._refuse(incoming.id, incoming.error)

    def _serve(self, request: Request) -> None:
        try:
            if request.method == "hello":
                self._answer(request.id, self._hello(request.params))
                return
            event = self._event(request)
        except PiTeamError as error:
            self._inbox.answered()
            self._refuse(request.id, error)
            return
        if isinstance(event, translation.LATER):
            if request.id in self._calls:
                self._inbox.answered()
                self._refuse(
                    request.id, ProtocolError("the id belongs to a request that is not answered yet")
                )
                return
            self._calls.add(request.id)
        if not self._handle(event):
            self._calls.discard(request.id)
            self._inbox.answered()
            self._refuse(request.id, InternalError("an exception that pi-team does not expect"))
        elif not isinstance(event, translation.LATER):
            self._closed = self._closed or isinstance(event, Shutdown)
            self._answer(request.id, {})

    def _event(self, request: Request) -> Event:
        make = translation.EVENTS.get(request.method)
        if make is None:
            raise ProtocolError(f"there is no method {request.method[:40]!r}")
        if self._controller is None:
            raise ProtocolError(f"{request.method} comes before hello")
        if self._closed:
            raise ProtocolError(f"{request.method} comes after shutdown")
        return make(request.id, request.params)

    def _hello(self, params: dict[str, Any]) -> dict[str, Any]:
        if self._controller is not None:
            raise ProtocolError("hello was said already")
        if params.get("protocol") != translation.PROTOCOL:
            raise ProtocolVersionError(
                f"this is pi-team {__version__}, which speaks protocol {translation.PROTOCOL}, "
                f"and not {str(params.get('protocol'))[:20]}"
            )
        if params.get("mode") not in translation.MODES:
            raise ProtocolError("membership is for interactive sessions: mode is tui or rpc")
        name, cwd, pid = translation.identity(params)
        if not _is_above(pid):
            raise ProtocolError(f"process {pid} has not started this one")
        try:
            self._session = Session(name, cwd, process_of(pid))
        except ProcessLookupError as error:
            raise ProtocolError(f"there is no process {pid}") from error
        self._mailbox = Mailbox(notice=lambda line: print(line, file=sys.stderr))
        cap = automatic_turns(os.environ.get("PI_TEAM_AUTO_TURNS"))
        self._controller = Controller(self._mailbox, self._session, self._clock, cap)
        return {"protocol": translation.PROTOCOL, "version": __version__}

    # --- out

    def _handle(self, event: Event) -> bool:
        """Let the controller decide, and do what it wants; False where it failed unexpectedly."""
        if self._controller is None:
            return True
        self._events.append(event)
        while self._events:
            if not self._decide(self._controller, self._events.pop(0)):
                return False
        return True

    def _decide(self, controller: Controller, event: Event) -> bool:
        try:
            effects = controller.handle(event)
        except Exception:  # noqa: BLE001 - a defect must not end the session's membership; it is told and logged
            traceback.print_exc(file=sys.stderr)
            if not self._told_of_defect:
                self._told_of_defect = True
                said = "pi-team has a defect, and goes on: what it logs names it. Please report it."
                self._tell("notify", {"level": "error", "text": said})
            return False
        for effect in effects:
            self._do(effect)
        return True

    def _do(self, effect: Effect) -> None:
        match effect:
            case AskReadiness():
                self._ask_readiness()
            case Deliver():
                self._deliver(effect)
            case Confirm(question=name):
                params = {"title": effect.title, "message": effect.message}
                self._ask("confirm", params, lambda answer: Confirmed(name, yes=_says(answer, "yes")))
            case Watch():
                self._watch_team(effect.team)
            case Answer():
                self._calls.discard(effect.call)
                self._answer(effect.call, effect.result)
            case _:
                self._outlet.send(translation.notification(effect))

    def _deliver(self, effect: Deliver) -> None:
        """Deliver; not while the host owes the answer to a delivery of a membership that was left since."""
        name = effect.delivery
        if self._delivering:
            self._events.append(NotStarted(name))
            return
        self._delivering = True
        params = {"delivery": name, "kind": effect.kind, "text": effect.text, "details": effect.details}
        self._ask("deliver", params, lambda answer: self._delivered(name, answer))

    def _delivered(self, name: str, answer: dict[str, Any] | None) -> Event:
        self._delivering = False
        return Started(name) if _says(answer, "started") else NotStarted(name)

    def _ask_readiness(self) -> None:
        """Ask, or ask once more when the answer to an earlier question has come: that one may be too old."""
        if self._asking is not None:
            self._ask_again = True
            return
        self._asking = self._ask("ready", {}, self._readiness)

    def _readiness(self, answer: dict[str, Any] | None) -> Event | None:
        self._asking = None
        if self._ask_again:
            self._ask_again = False
            self._ask_readiness()
            return None
        return translation.readiness(answer)

    def _ask(
        self, method: str, params: dict[str, Any], then: Callable[[dict[str, Any] | None], Event | None]
    ) -> Identifier:
        self._numbered += 1
        name = f"b{self._numbered}"
        self._questions[name] = then
        self._outlet.send({"id": name, "method": method, "params": params})
        return name

    def _tell(self, method: str, params: dict[str, Any]) -> None:
        self._outlet.send({"method": method, "params": params})

    def _answer(self, name: Identifier, result: dict[str, Any]) -> None:
        self._inbox.answered()
        self._outlet.send({"id": name, "result": result})

    def _refuse(self, name: Identifier | None, error: PiTeamError) -> None:
        self._outlet.send({"id": name, "error": error.to_json()})

    def _watch_team(self, team: str | None) -> None:
        if self._watch is not None:
            self._watch.close()
            self._watch = None
        if team is not None and self._mailbox is not None:
            with contextlib.suppress(PiTeamError, OSError):  # without a watch, polling it is
                self._watch = Watcher(self._mailbox.changes(team), self._inbox.wake)
            self._inbox.wake()  # for what changed before the watch began


def _says(answer: dict[str, Any] | None, name: str) -> bool:
    return answer is not None and answer.get(name) is True


def _is_above(pid: int) -> bool:
    """Whether a process is this one's parent, or an ancestor of it."""
    if pid == os.getppid():
        return True
    import psutil  # noqa: PLC0415 - only where something stands between the two

    with contextlib.suppress(psutil.Error):
        return any(process.pid == pid for process in psutil.Process().parents())
    return False


def _own_stdout() -> int:
    """The pipe to the host, for this module alone: whatever prints goes to standard error from here on."""
    fd = os.dup(1)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return fd


def main() -> int:
    """Run until the input ends; the exit status."""
    # Ctrl-C and a closed terminal are the host's to act on; the end of the input ends the bridge.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    ended = threading.Event()
    finished = threading.Event()

    def end() -> None:
        ended.set()
        inbox.wake()
        finished.wait(_GRACE)
        os._exit(0)  # without leaving: what is under way is what a crash would leave, and as safe

    inbox = Inbox(0, end)
    bridge = Bridge(inbox, Outlet(_own_stdout()))
    inbox.start()
    with contextlib.suppress(BrokenPipeError):
        bridge.run(ended)
    finished.set()
    sys.stderr.flush()
    os._exit(0)  # the reading thread cannot be joined while the host keeps the pipe open
