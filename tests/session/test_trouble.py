"""Storage that refuses, answers that are lost, memberships that are gone: what a session makes of them."""

from __future__ import annotations

import errno
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from interposition import REFUSALS
from pi_team.errors import StorageError, TeamMoved
from pi_team.session.effects import Deliver, Remember, Show, Watch
from pi_team.session.events import Confirmed, NotStarted, Shutdown
from scripted_host import BUSY, READY, notices, of

if TYPE_CHECKING:
    from scripted_host import Host, OpenHost

LOSE_ANSWER = {"linked": ("fsync", "revisions"), "not yet installed": ("rename", "* -> state.json")}
"""Calls behind which nobody can know: the change is in the history, and whoever comes next completes it."""


def lose_answer(host: Host, how: str = "linked") -> None:
    """Let the next change of this session have an outcome that it cannot know."""
    host.fs.at(*LOSE_ANSWER[how]).fail(errno.EIO)


# --- trouble


@pytest.mark.parametrize("code", REFUSALS, ids=lambda code: errno.errorcode[code])
def test_trouble_is_told_once_and_pauses_nothing(alice: Host, bob: Host, code: int) -> None:
    """Whatever the system says: one warning, reception stays, and all goes on when it has passed."""
    alice.team("send bob Fix the parser")
    alice.team("note bob And mind this")
    bob.fs.at("create").fail(code).always()
    told = [text for _ in range(5) for text in notices(bob.poll())]
    assert len(told) == len(set(told)) <= 3  # a heartbeat, the notes, the claim
    assert bob.state == "receiving"
    bob.fs.forget()
    effects = bob.poll()
    assert of(Show, effects)
    assert of(Deliver, effects)


def test_claims_that_fail_do_not_fill_the_entries(alice: Host, bob: Host) -> None:
    """A message waits and every claim is refused: each poll took the warning back and wrote it again."""
    alice.team("send bob Fix the parser")
    bob.fs.at("create").fail(errno.ENOSPC).always()
    written = [effect for _ in range(10) for effect in of(Remember, bob.poll())]
    assert [effect.entry["paused"] for effect in written] == ["recovery"]
    assert bob.own_claims() == []
    bob.ready = BUSY
    assert [effect.entry["paused"] for effect in of(Remember, bob.poll())] == [None]
    assert of(Remember, bob.poll()) == []
    bob.fs.forget()
    bob.ready = READY
    assert of(Deliver, bob.poll())


def test_a_warning_goes_when_nothing_waits_any_more(alice: Host, bob: Host) -> None:
    """The claim was refused, and the message is withdrawn: the entry does not stay as if it were claimed."""
    alice.team("send bob Fix the parser")
    bob.fs.at("create").fail(errno.ENOSPC).always()
    bob.poll()
    assert bob.entry is not None
    assert bob.entry["paused"] == "recovery"
    bob.fs.forget()
    alice.tell(Shutdown())
    bob.answers = False
    bob.team("remove alice")
    bob.tell(Confirmed("q1", yes=True))
    assert [message.state for message in bob.messages()] == ["interrupted"]
    bob.poll()
    assert bob.entry["paused"] is None


def test_trouble_with_other_numbers_is_the_same_trouble(bob: Host) -> None:
    """An id or a count in the message does not make it new."""
    context = bob.controller._context
    for number in range(5):
        context.trouble(StorageError(f"cannot write .{number}-0a1b2c3d.tmp: no space"), "look")
    assert len(notices(context.drain())) == 1


def test_what_is_remembered_of_trouble_is_bounded(bob: Host) -> None:
    """A thousand distinct messages, each told."""
    context = bob.controller._context
    for number in range(1_000):
        context.trouble(StorageError("x" * (number + 1)), "look")
    assert len(context._troubles) == 50


def test_heartbeats_go_on_while_the_record_cannot_be_read(alice: Host, bob: Host) -> None:
    """A damaged record: the session says so once, stays alive for the others, and receives after repair."""
    path = alice.mailbox.path + "/crew/state.json"
    with open(path, "rb") as file:
        good = file.read()
    with open(path, "wb") as file:
        file.write(b"{")
    told = [text for _ in range(20) for text in notices(bob.poll())]
    assert len(told) == 1
    assert "could not look at the team" in told[0]
    with open(path, "wb") as file:
        file.write(good)
    assert [entry.displayed for entry in alice.mailbox.look("crew").members][1] == "idle"
    alice.team("send bob Fix the parser")
    assert of(Deliver, bob.poll())


def test_a_result_that_cannot_be_recorded_pauses_and_is_tried_again(alice: Host, bob: Host) -> None:
    """The turn has ended and the disk is full: held, said, retried; nothing is claimed, nothing is lost."""
    alice.team("send bob First")
    alice.team("send bob Second")
    bob.poll()
    bob.fs.at("create").fail(errno.ENOSPC).always()
    effects = bob.settle("the work", files=("/p/a.py",))
    assert "could not be recorded" in notices(effects, "error")[0]
    assert bob.entry is not None
    assert bob.entry["paused"] == "recovery"
    assert "trying to record" in str(bob.shown and bob.shown.widget)
    bob.type()
    bob.settle("the person's own turn")
    told = [text for _ in range(3) for text in notices(bob.poll(), "error")]
    assert told == []
    bob.fs.forget()
    effects = bob.poll()
    assert notices(effects, "info") == [
        "The team work has its result in the record now. /team resume goes on receiving."
    ]
    assert (alice.messages()[2].body, bob.state) == ("the work", "paused")
    assert of(Deliver, bob.poll()) == []
    bob.team("resume")
    assert bob.delivered is not None
    assert bob.delivered.details["subject"] == "Second"


def hold(alice: Host, bob: Host) -> None:
    """The first of two requests is done, and its result cannot be recorded until bob's disk has room."""
    alice.team("send bob First")
    alice.team("send bob Second")
    bob.poll()
    bob.fs.at("create").fail(errno.ENOSPC).always()
    bob.settle("the work")


def test_what_has_waited_to_be_recorded_survives_a_resume(alice: Host, bob: Host) -> None:
    """`resume` tries at once; while it fails nothing new is claimed, and the report is not lost."""
    hold(alice, bob)
    for _ in range(2):
        (told,) = notices(bob.team("resume"))
        assert "goes on when the result of the team work is recorded" in told
        assert bob.state == "working"
    assert [message.subject for message in bob.own_claims()] == ["First"]
    bob.fs.forget()
    bob.poll()
    bob.poll()
    assert [message.subject for message in bob.own_claims()] == ["Second"]


def test_a_resume_that_records_what_has_waited(alice: Host, bob: Host) -> None:
    """There is room again: the result is in the record, and what waits is taken."""
    hold(alice, bob)
    bob.fs.forget()
    assert notices(bob.team("resume")) == ["Receiving again."]
    bob.poll()
    assert [message.subject for message in bob.own_claims()] == ["Second"]


def test_a_resume_that_finds_the_membership_lost(alice: Host, bob: Host) -> None:
    """It said that the session receives again, and then that it is no member any more."""
    bob.team("pause")
    alice.mailbox.leave(bob.controller._context.owner)
    (told,) = notices(bob.team("resume"))
    assert "is no member of crew any more" in told


@pytest.mark.parametrize("end", ["shutdown", "leave", "leave twice"])
def test_what_has_waited_to_be_recorded_is_recorded_at_the_end(alice: Host, bob: Host, end: str) -> None:
    """Leaving interrupts what is claimed: the result that was held was lost, though there was room again."""
    alice.team("send bob Fix the parser")
    bob.poll()
    bob.fs.at("create").fail(errno.ENOSPC).always()
    bob.settle("the work")
    bob.fs.forget()
    if end == "shutdown":
        bob.tell(Shutdown())
    for _ in range({"shutdown": 0, "leave": 1, "leave twice": 2}[end]):
        bob.team("leave")
    bob.poll()
    assert bob.state in {"detached", "closed"}
    assert [message.body for message in alice.messages()][1:] == ["the work"]
    assert not [place for place in alice.mailbox.look("crew").members if place.member.status == "busy"]


# --- lost answers


def test_a_settlement_whose_answer_was_lost(alice: Host, bob: Host) -> None:
    """It took effect: the retry finds that, and there is one result."""
    alice.team("send bob Fix the parser")
    bob.poll()
    lose_answer(bob)
    bob.settle("the work")
    bob.fs.forget()
    bob.poll()
    assert bob.state == "paused"
    assert [message.body for message in bob.messages()][1:] == ["the work"]


@pytest.mark.parametrize("how", LOSE_ANSWER)
def test_a_claim_whose_answer_was_lost_is_given_back(alice: Host, bob: Host, how: str) -> None:
    """A claim under the own token, no work, no call in flight: released, and delivered after all."""
    alice.team("send bob Fix the parser")
    lose_answer(bob, how)
    assert of(Deliver, bob.poll()) == []
    assert bob.state == "receiving"
    assert bob.entry is not None
    assert bob.entry["paused"] == "recovery"
    assert [message.state for message in alice.messages()] == ["processing"]
    bob.fs.forget()
    assert len(of(Deliver, bob.poll() + bob.poll())) == 1
    bob.settle("done")
    assert bob.entry["paused"] is None
    assert [message.state for message in alice.messages()] == ["completed", "pending"]


def test_a_release_that_was_refused_is_made_up_for(alice: Host, bob: Host) -> None:
    """The host was busy and the disk full: a later poll gives the claim back; until then the entry warns."""
    alice.team("send bob Fix the parser")
    bob.answers = False
    bob.poll()
    bob.tell(READY)
    bob.tell(READY)
    bob.fs.at("create").fail(errno.ENOSPC).always()
    effects = bob.tell(NotStarted("d1"))
    assert "could not give a message back" in notices(effects, "warning")[0]
    bob.poll()
    assert [message.state for message in alice.messages()] == ["processing"]
    assert bob.entry is not None
    assert bob.entry["paused"] == "recovery"
    bob.fs.forget()
    bob.poll()
    bob.poll()
    assert [message.state for message in alice.messages()] == ["pending"]
    bob.tell(BUSY)
    bob.poll()
    assert bob.entry["paused"] is None


def test_a_rename_whose_answer_was_lost(alice: Host, bob: Host) -> None:
    """The session finds its token in the roster, and goes on under that alias."""
    lose_answer(bob)
    effects = bob.team("rename-member bob robert")
    bob.fs.forget()
    assert notices(effects) == ["bob is called robert now."]
    alice.team("send robert Fix the parser")
    bob.poll()
    assert bob.entry is not None
    assert bob.entry["alias"] == "robert"
    bob.settle("done")
    assert alice.messages()[1].sender == "robert"


def test_a_rename_that_comes_true_later(alice: Host, bob: Host) -> None:
    """Nothing can be read behind it, so nobody knows; the next poll finds the token under the new alias."""
    bob.fs.at("rename", "* -> state.json").fail(errno.EIO)
    bob.fs.at("open_read", "state.json", nth=3).fail(errno.EIO).always()
    told = notices(bob.team("rename-member bob robert"), "error")
    assert "may or may not take effect" in told[0]
    bob.fs.forget()
    alice.poll()  # whoever looks completes it
    bob.poll()
    assert bob.shown is not None
    assert (bob.shown.alias, bob.state) == ("robert", "receiving")


@pytest.mark.parametrize("tool", ["team_send", "team_status", "team_members"])
def test_a_tool_behind_a_rename_that_came_true(alice: Host, bob: Host, tool: str) -> None:
    """The model was told that the session is no member any more, while it went on under the new alias."""
    alice.mailbox.rename_member("crew", "bob", "robert", actor=bob.controller._context.owner)
    params = {"to": "alice", "kind": "note", "subject": "s", "body": "b"} if tool == "team_send" else {}
    answer = bob.tool(tool, **params)
    assert not answer["isError"], answer
    assert (bob.shown and bob.shown.alias, bob.state) == ("robert", "receiving")
    assert [message.sender for message in alice.messages()] == ["robert"] * len(params and [1])


def test_a_tool_of_a_membership_that_cannot_be_looked_into(alice: Host, bob: Host) -> None:
    """Lost or renamed: nobody can know, so the model is not told that it is lost."""
    alice.mailbox.rename_member("crew", "bob", "robert", actor=bob.controller._context.owner)
    bob.mailbox.look = _refuse  # type: ignore[method-assign, assignment]
    answer = bob.tool("team_status")
    assert answer["isError"]
    assert "no member of the team any more" not in answer["text"]
    assert "Try once more" in answer["text"]
    assert bob.state == "receiving"


@pytest.mark.parametrize("line", ["send alice Fix", "status", "wake", "rename-member bob bobby"])
def test_a_command_behind_a_rename_that_came_true(alice: Host, bob: Host, line: str) -> None:
    """The person was told to join again, while the session went on under the new alias."""
    alice.mailbox.rename_member("crew", "bob", "robert", actor=bob.controller._context.owner)
    effects = bob.team(line)
    (told,) = notices(effects)
    assert told.startswith("This session is called robert by now")
    assert (bob.shown and bob.shown.alias, bob.state) == ("robert", "receiving")
    assert of(Show, bob.team("status"))


def test_notes_whose_answer_was_lost_are_shown(alice: Host, bob: Host) -> None:
    """They are seen in the record, and nobody has seen them: the next poll shows them, once."""
    alice.team("note bob Mind this")
    lose_answer(bob)
    assert of(Show, bob.poll()) == []
    bob.fs.forget()
    assert [message.state for message in alice.messages()] == ["seen"]
    assert [effect.entry["title"] for effect in of(Show, bob.poll())] == ["Note from alice: Mind this"]
    assert of(Show, bob.poll()) == []


def test_a_send_whose_answer_was_lost(alice: Host, bob: Host) -> None:
    """The model is told to look before it sends again, and sees there that it is queued."""
    lose_answer(alice, "not yet installed")
    answer = alice.tool("team_send", to="bob", kind="request", subject="Fix", body="it")
    assert answer["text"].startswith("Refused (OUTCOME_UNKNOWN): ")
    assert "Look with team_status before you send it again." in answer["text"]
    alice.fs.forget()
    items = alice.tool("team_status")["details"]["emitted"]["items"]
    assert [item["subject"] for item in items] == ["Fix"]
    assert bob.state == "receiving"


def test_a_wake_whose_answer_was_lost(alice: Host, bob: Host) -> None:
    """It was said that nothing was queued, and the check-in came all the same."""
    lose_answer(alice)
    (shown,) = of(Show, alice.team("wake"))
    alice.fs.forget()
    (line,) = [line for line in shown.entry["lines"] if "for bob" in line]
    assert line.startswith("perhaps queued for bob: ")
    assert of(Deliver, bob.poll())


def test_a_wake_that_loses_the_membership_says_what_it_queued(
    alice: Host, bob: Host, host: OpenHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another session takes the alias between two messages: the first is queued, and nothing showed that."""
    host("carol").team("join crew carol")
    assert bob.state == "receiving"
    send = alice.mailbox.send

    def send_and_lose(*args: Any, **named: Any) -> Any:
        message = send(*args, **named)
        host("alice").mailbox.leave(alice.controller._context.owner)
        return message

    monkeypatch.setattr(alice.mailbox, "send", send_and_lose)
    effects = alice.team("wake")
    assert [message.recipient for message in bob.messages()] == ["bob"]
    (shown,) = of(Show, effects)
    assert shown.entry["lines"] == ["queued for bob", "not queued for carol"]
    assert alice.state == "detached"
    assert "no member of crew any more" in notices(effects, "error")[-1]


@pytest.mark.parametrize("how", LOSE_ANSWER)
def test_a_poll_completes_what_a_dead_writer_left(alice: Host, bob: Host, how: str) -> None:
    """Linked and never installed: the recipient's next look completes it, and takes the request."""
    lose_answer(alice, how)
    alice.team("send bob Fix the parser")
    assert of(Deliver, bob.poll())


# --- lost memberships


def test_a_lost_membership_detaches(alice: Host, bob: Host, host: OpenHost) -> None:
    """Another session took the alias (as after a long suspension): said, remembered, nothing more is done."""
    owner = bob.controller._context.owner
    alice.mailbox.leave(owner)
    other = host("other")
    other.team("join crew bob")
    effects = bob.poll()
    assert bob.state == "detached"
    assert bob.entry == {"version": 1, "left": True}
    assert of(Watch, effects) == [Watch(None)]
    assert "is no member of crew any more" in notices(effects, "error")[0]
    assert bob.poll() == []
    other.poll()
    assert other.state == "receiving"


def test_work_of_a_lost_membership_is_not_reported(alice: Host, bob: Host) -> None:
    """The record has its interrupted result already; the turn that goes on belongs to the person."""
    alice.team("send bob Fix the parser")
    bob.poll()
    alice.mailbox.leave(bob.controller._context.owner)
    bob.settle("the work")
    assert bob.state == "detached"
    assert "the work" not in [message.body for message in alice.messages()]


def test_a_loss_that_cannot_be_looked_into_is_no_loss_yet(alice: Host, bob: Host) -> None:
    """The alias is gone from the record, and then nothing can be read: the next poll finds the rename."""
    alice.mailbox.rename_member("crew", "bob", "robert", actor=bob.controller._context.owner)
    look = bob.mailbox.look
    bob.mailbox.look = _refuse  # type: ignore[method-assign, assignment]
    effects = bob.poll()
    assert "could not look for this session in crew" in notices(effects, "warning")[0]
    assert bob.state == "receiving"
    bob.mailbox.look = look  # type: ignore[method-assign]
    bob.poll()
    assert bob.shown is not None
    assert (bob.shown.alias, bob.state) == ("robert", "receiving")


def _refuse(_team: str) -> Any:
    raise StorageError("no descriptors left")


def test_a_team_that_is_gone_detaches(alice: Host, bob: Host) -> None:
    """Somebody deleted the files by hand."""
    shutil.rmtree(alice.mailbox.path + "/crew")
    bob.poll()
    assert bob.state == "detached"


def test_a_tool_of_a_lost_membership(alice: Host, bob: Host) -> None:
    """The model is told what to do, and the session is detached."""
    alice.mailbox.leave(bob.controller._context.owner)
    answer = bob.tool("team_send", to="alice", kind="note", subject="s", body="b")
    assert answer["isError"]
    assert "Tell the user" in answer["text"]
    assert bob.state == "detached"
    assert "is in no team" in bob.tool("team_status")["text"]


def test_a_tool_of_a_team_that_is_gone(alice: Host, bob: Host) -> None:
    """The model is told that it is no member any more, and so it is from then on."""
    shutil.rmtree(alice.mailbox.path + "/crew")
    assert "is no member of the team any more" in bob.tool("team_status")["text"]
    assert bob.state == "detached"


@pytest.mark.parametrize("call", ["send", "notes", "claim", "settle", "snapshot"])
def test_a_team_that_was_moved_and_moved_back(alice: Host, bob: Host, call: str) -> None:
    """A rename that found somebody alive looks like a team that is gone; the member left a team it was in."""
    alice.team("note bob Mind this")
    alice.team("send bob Fix the parser")
    real = getattr(bob.mailbox, call)

    def moved(*_: object, **__: object) -> None:
        setattr(bob.mailbox, call, real)
        raise TeamMoved("team crew was renamed or deleted meanwhile")

    setattr(bob.mailbox, call, moved)
    bob.tool("team_send", to="alice", kind="note", subject="s", body="b")
    for _ in range(2):
        bob.poll()
    bob.settle()
    bob.poll()
    assert bob.state == "receiving"
    assert bob.entry is not None
    assert "left" not in bob.entry
    (result,) = [message for message in alice.messages() if message.kind == "result"]
    assert result.report is not None
    assert (result.sender, result.report.outcome) == ("bob", "completed")


def test_the_entry_is_written_again_only_when_it_differs(bob: Host) -> None:
    """Polls and heartbeats do not fill the host's session with entries."""
    assert [effect for _ in range(10) for effect in of(Remember, bob.poll())] == []
