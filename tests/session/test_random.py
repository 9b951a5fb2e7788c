"""Any events in any order, against what always holds: two sessions, one record, a disk that may refuse."""

from __future__ import annotations

import errno
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from pi_team.limits import AUTOMATIC_RESULT_CHARACTERS
from pi_team.session import bounds
from pi_team.session.context import Context
from pi_team.session.effects import Answer, AskReadiness, Confirm, Deliver, Notify, Remember, Watch
from pi_team.session.events import Confirmed, NotStarted, Poll, Settled, Shutdown, Started, Typed
from pi_team.session.reception import Reception
from pi_team.session.working import Working
from scripted_host import BUSY, READY, Host, MovedClock

if TYPE_CHECKING:
    from collections.abc import Callable

    from pi_team.domain.views import Snapshot
    from pi_team.session.events import Readiness

CAP: Final = 2
NAMES: Final = st.sampled_from(["alice", "bob"])
LINES: Final = st.sampled_from(
    [
        "pause", "resume", "resume", "resume", "leave", "join crew alice", "join crew alice", "join crew bob",
        "join crew bob", "status", "inbox", "wake", "send bob Again", "note alice Look", "remove alice",
        "remove bob", "rename-member bob robert", "rename-member robert bob", "delete crew", "create crew",
    ]
)  # fmt: skip
FAULTS: Final = st.sampled_from(
    [
        ("create", "*"),
        ("link", "*"),
        ("fsync", "revisions"),
        ("rename", "* -> state.json"),
        ("open_read", "*"),
    ]
)


class Watched(Host):
    """A host that answers nothing by itself, and checks each effect against what came before."""

    def __init__(self, path: Path, clock: MovedClock, name: str) -> None:
        super().__init__(path, clock, name, cap=CAP)
        self.answers = False
        self.asked = 0
        self.outstanding: str | None = None
        self.running = False
        self.turns = 0
        self.question: str | None = None
        self.refusing = False

    def tell(self, event: Any) -> Any:
        effects = super().tell(event)
        for effect in effects:
            self.check(effect)
        return effects

    def check(self, effect: Any) -> None:
        if isinstance(effect, AskReadiness):
            self.asked += 1
            assert self.asked == 1, "a second question while one is open"
        elif isinstance(effect, Deliver):
            assert self.outstanding is None, "a second delivery while one is open"
            assert self.controller.state == "working"
            assert self.entry is not None
            assert effect.kind == "review" or self.entry["paused"] in {"recovery", "explicit"}
            assert self.turns < CAP, "a turn beyond the cap"
            assert len(effect.text) <= bounds.DELIVERY_CHARACTERS
            self.outstanding = effect.delivery
        elif isinstance(effect, Watch):
            # Another membership, or none: what was asked under the old one is answered to nobody.
            self.asked, self.outstanding = 0, None
        elif isinstance(effect, Confirm):
            assert self.question is None
            self.question = effect.question
        elif isinstance(effect, Notify):
            assert len(effect.text) <= bounds.NOTICE_CHARACTERS
        elif isinstance(effect, Answer | Remember):
            assert "token" not in str(effect)


class Sessions(RuleBasedStateMachine):
    """Two sessions and a clock."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = tempfile.TemporaryDirectory()
        self.clock = MovedClock()
        path = Path(self.directory.name) / "teams"
        self.hosts = {name: Watched(path, self.clock, name) for name in ("alice", "bob")}
        self.hosts["alice"].team("create crew")
        for name, host in self.hosts.items():
            host.team(f"join crew {name}")

    def teardown(self) -> None:
        for host in self.hosts.values():
            host.mailbox.close()
        self.directory.cleanup()

    # --- what happens

    @rule(name=NAMES, seconds=st.sampled_from([0.0, 2.0, 2.0, 20.0, 70.0]))
    def poll(self, name: str, seconds: float) -> None:
        """Time passes in steps during which both stay alive."""
        for _ in range(int(seconds // 20)):
            self.clock.offset += 20.0
            for host in self.hosts.values():
                host.tell(Poll())
        self.clock.offset += seconds % 20
        self.hosts[name].tell(Poll())

    @rule(
        name=NAMES,
        seconds=st.sampled_from([2.0, 2.0, 310.0]),
        starts=st.sampled_from([True, True, True, False]),
    )
    def be_ready(self, name: str, seconds: float, starts: bool) -> None:
        """What a host does that nothing disturbs: poll, answer both questions, and the delivery."""
        host = self.hosts[name]
        self.poll(name, seconds)
        while host.asked:
            self.answer_the_question(name, ready=True)
        self.answer_the_delivery(name, starts)

    @rule(name=NAMES, resumed=st.booleans())
    def send_and_work(self, name: str, resumed: bool) -> None:
        """The main job, once round, after everything was put in order."""
        for each, host in self.hosts.items():
            self.mend(each)
            if host.state == "detached":
                host.team("create crew")
                self.command(each, f"join crew {each}")
            if resumed:
                self.command(each, "resume")
        other = "bob" if name == "alice" else "alice"
        alias = getattr(self.hosts[other].shown, "alias", None) or other
        self.send(name, alias, "request")
        for worker in (other, name):
            self.be_ready(worker, 2.0, starts=True)
            self.settle(worker, "done", "stop")

    @rule(name=NAMES, ready=st.booleans())
    def answer_the_question(self, name: str, ready: bool) -> None:
        host = self.hosts[name]
        host.asked = 0
        host.tell(READY if ready and not host.running else BUSY)

    @rule(name=NAMES, starts=st.booleans())
    def answer_the_delivery(self, name: str, starts: bool) -> None:
        host = self.hosts[name]
        if host.outstanding is not None and not host.running:
            delivery, host.outstanding = host.outstanding, None
            host.running = starts
            host.turns += starts
            host.tell(Started(delivery) if starts else NotStarted(delivery))

    @rule(
        name=NAMES,
        text=st.none() | st.text(max_size=30) | st.just("y" * 9_000),
        stop=st.sampled_from(["stop", "length", "error", "aborted", "toolUse"]),
    )
    def settle(self, name: str, text: str | None, stop: str) -> None:
        self.hosts[name].running = False
        self.hosts[name].tell(Settled(text, stop, None, ("/p/a", "/p/b")))

    @rule(name=NAMES)
    def type(self, name: str) -> None:
        self.hosts[name].turns = 0
        self.hosts[name].tell(Typed(("/p/half",)))

    @rule(name=NAMES, line=LINES)
    def command(self, name: str, line: str) -> None:
        host = self.hosts[name]
        if line == "resume" or (line.startswith("join") and host.state == "detached"):
            host.turns = 0
        host.team(line)

    @rule(name=NAMES, yes=st.booleans())
    def confirm(self, name: str, yes: bool) -> None:
        host = self.hosts[name]
        if host.question is not None:
            question, host.question = host.question, None
            host.tell(Confirmed(question, yes))

    @rule(
        name=NAMES, to=st.sampled_from(["alice", "bob", "robert"]), kind=st.sampled_from(["request", "note"])
    )
    def send(self, name: str, to: str, kind: str) -> None:
        subject = f"{self.clock.offset}"
        self.hosts[name].tool("team_send", to=to, kind=kind, subject=subject, body=f"from {name}")

    @rule(name=NAMES)
    def look(self, name: str) -> None:
        answer = self.hosts[name].tool("team_status")
        assert len(answer["text"]) < 20_000

    @rule(name=NAMES, fault=FAULTS, lasting=st.booleans())
    def refuse(self, name: str, fault: tuple[str, str], lasting: bool) -> None:
        """The system refuses the next call of a kind, or all of them until it is mended."""
        host = self.hosts[name]
        point = host.fs.at(*fault).fail(errno.ENOSPC)
        host.refusing = True
        if lasting:
            point.always()

    @rule(name=NAMES)
    def mend(self, name: str) -> None:
        self.hosts[name].fs.forget()
        self.hosts[name].refusing = False

    @rule(name=NAMES)
    def restart(self, name: str) -> None:
        """The host's session ends in order, and comes back by its entry."""
        old = self.hosts[name]
        old.tell(Shutdown())
        old.mailbox.close()
        new = Watched(Path(self.directory.name) / "teams", self.clock, name)
        self.hosts[name] = new
        new.entry = old.entry
        new.restore(old.entry)
        if new.state == "paused":
            assert old.entry is not None
            assert old.entry["paused"] is not None

    # --- what always holds

    @invariant()
    def a_claim_is_work(self) -> None:
        """Where the disk is well: what is claimed by a session's token is its work."""
        for host in self.hosts.values():
            context = host.controller._context
            if host.refusing or not context.is_joined or context.endangered != (context.work is not None):
                continue
            claimed = {
                message.id
                for message in host.messages()
                if message.state == "processing" and message.claim == context.owner.token
            }
            work = context.work
            if work is None or work.message is None:
                assert claimed == set()
            else:
                assert claimed <= {work.message.id}

    @invariant()
    def states_and_work_belong_together(self) -> None:
        """Working means that there is work; a pause is held where the session is paused."""
        for host in self.hosts.values():
            context = host.controller._context
            assert host.state != "working" or context.work is not None
            assert host.state not in {"receiving", "paused", "detached", "closed"} or context.work is None
            assert (host.state == "paused") <= (context.pause is not None)
            assert (host.state == "receiving") <= (context.pause is None)
            assert context.is_joined == (host.state not in {"detached", "closed"})
            assert (
                host.entry is None
                or ("left" in host.entry) == (not context.is_joined)
                or host.state == "detached"
            )

    @invariant()
    def every_request_that_ended_has_one_result(self) -> None:
        """Completed or interrupted: exactly one, unless its emitter was removed; and within its bounds."""
        mailbox = self.hosts["alice"].mailbox
        if self.hosts["alice"].refusing or "crew" not in mailbox.teams():
            return
        messages = mailbox.look("crew").messages
        for request in messages:
            results = [
                message
                for message in messages
                if message.parent_id == request.id and message.kind == "result"
            ]
            if request.kind == "request":
                assert len(results) <= 1
                assert request.state != "completed" or results
                assert request.state in {"completed", "interrupted"} or not results
            for result in results:
                assert len(result.body) <= AUTOMATIC_RESULT_CHARACTERS + bounds.NOTICE_CHARACTERS


def run(examples: int, steps: int) -> None:
    run_state_machine_as_test(
        Sessions,
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
        ),
    )


def test_a_few_random_lives() -> None:
    """Short ones, at every run of the tests."""
    run(examples=6, steps=15)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_many_random_lives() -> None:
    """Longer ones: thousands of events against the same invariants."""
    run(examples=60, steps=40)


# --- controls: each rule that is broken on purpose is noticed by the same checks


def _three_requests(sessions: Sessions) -> None:
    """One more than the cap allows, without a person."""
    for _ in range(CAP + 1):
        sessions.clock.offset += 1.0
        sessions.send("alice", "bob", "request")
    for _ in range(CAP + 1):
        sessions.be_ready("bob", 2.0, starts=True)
        sessions.settle("bob", "done", "stop")


def _not_started(sessions: Sessions) -> None:
    """A delivery that the host could not start."""
    sessions.send("alice", "bob", "request")
    sessions.be_ready("bob", 2.0, starts=False)
    sessions.a_claim_is_work()


def _taken_over(sessions: Sessions) -> None:
    """A person types during the work."""
    sessions.send("alice", "bob", "request")
    sessions.be_ready("bob", 2.0, starts=True)
    sessions.type("bob")
    sessions.every_request_that_ended_has_one_result()
    sessions.states_and_work_belong_together()
    sessions.a_claim_is_work()
    assert sessions.hosts["bob"].state == "paused"


def _claims_unannounced(self: Reception, readiness: Readiness) -> None:
    self._context.endangered = True
    _READINESS(self, readiness)


def _asks_again(self: Reception, snapshot: Snapshot) -> None:
    self._asked = False
    _ASK(self, snapshot)
    self._context.emit(AskReadiness())


_READINESS: Final = Reception.readiness
_ASK: Final = Reception._ask
CONTROLS: Final[dict[str, tuple[Callable[[Sessions], None], type, str, object]]] = {
    "the cap is forgotten": (_three_requests, Context, "is_exhausted", False),
    "nothing pauses": (_three_requests, Context, "hold", lambda *_: None),
    "a takeover does not pause": (_taken_over, Context, "hold", lambda *_: None),
    "a claim is not given back": (_not_started, Working, "release", lambda *_: True),
    "a claim is not written down": (_not_started, Reception, "readiness", _claims_unannounced),
    "no entry is written": (_not_started, Context, "remember", lambda _: None),
    "the host is asked twice": (_not_started, Reception, "_ask", _asks_again),
    "work ends unrecorded": (_taken_over, Working, "_record", lambda self, *_: self._finish(unclaimed=True)),
}


@pytest.mark.parametrize("broken", CONTROLS)
def test_a_broken_rule_is_noticed(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The checks of the random lives find what is wrong, in a life that goes well while nothing is."""
    life, owner, name, value = CONTROLS[broken]
    sound = Sessions()
    life(sound)
    sound.teardown()
    monkeypatch.setattr(owner, name, value)
    sick = Sessions()
    with pytest.raises(AssertionError):
        life(sick)
    sick.teardown()
