"""The model's tools: what they answer, how they refuse, and how they link and bound what they say."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from pi_team.domain.reports import require_report
from pi_team.session import bounds, reports
from pi_team.session.events import NotStarted, Poll
from scripted_host import READY

if TYPE_CHECKING:
    from scripted_host import Host, OpenHost

REQUEST: dict[str, Any] = {"kind": "request", "subject": "Fix", "body": "the parser"}


def test_members_are_the_others(alice: Host, bob: Host, host: OpenHost) -> None:
    """Without this session; with their status and the end of their directory."""
    carol = host("carol")
    carol.team("join crew carol")
    carol.team("leave")
    answer = bob.tool("team_members")
    assert answer["details"]["members"] == [
        {"alias": "alice", "status": "idle", "directory": "/alice/project"},
        {"alias": "carol", "status": "offline", "directory": "/carol/project"},
    ]
    assert "- carol: offline, in /carol/project" in answer["text"]
    assert "- bob" not in answer["text"]
    assert "none yet" in Lonely(host).answer["text"]
    assert alice.state == "receiving"


class Lonely:
    """A session alone in its team."""

    def __init__(self, host: OpenHost) -> None:
        lonely = host("lonely")
        lonely.team("create island")
        lonely.team("join island lonely")
        self.answer = lonely.tool("team_members")


def test_long_directories_are_cut_at_their_beginning(alice: Host, host: OpenHost) -> None:
    """The end says more; the cut is stated by an ellipsis."""
    dora = host("dora")
    dora.session = dora.controller._context.session = type(dora.session)(
        "s", "/" + "x" * 300 + "/end\x1b[31m", dora.session.process
    )
    dora.team("join crew dora")
    directory = alice.tool("team_members")["details"]["members"][0]["directory"]
    assert len(directory) == bounds.DIRECTORY_CHARACTERS
    assert directory.startswith("…x")
    assert directory.endswith("/end")


def test_sending_answers_queued_and_never_done(alice: Host, bob: Host) -> None:
    """The model must not take the one for the other."""
    answer = alice.tool("team_send", to="bob", **REQUEST)
    message = alice.messages()[0]
    assert (message.sender, message.recipient, message.subject, message.body) == (
        "alice",
        "bob",
        "Fix",
        "the parser",
    )
    assert answer["text"].startswith(f"Queued request {message.id} for bob. Queued is not done.")
    assert answer["details"] == {
        "id": message.id,
        "to": "bob",
        "kind": "request",
        "subject": "Fix",
        "parent": None,
    }
    assert bob.state == "receiving"


def test_what_is_sent_during_work_belongs_to_its_thread(alice: Host, bob: Host, host: OpenHost) -> None:
    """A request during a request, a reply during the look at a result; nothing after the turn."""
    carol = host("carol")
    carol.team("join crew carol")
    alice.tool("team_send", to="bob", **REQUEST)
    bob.poll()
    bob.tool("team_send", to="carol", **REQUEST)
    first, second = alice.messages()
    assert (second.parent_id, second.root_id) == (first.id, first.id)
    bob.settle("done")
    alice.poll()
    result = alice.messages()[-1]
    alice.tool("team_send", to="bob", kind="note", subject="Missing", body="a test")
    assert alice.messages()[-1].parent_id == result.id
    alice.settle("looked at")
    alice.tool("team_send", to="bob", kind="note", subject="Else", body="x")
    assert alice.messages()[-1].parent_id is None


def test_what_is_sent_before_the_work_begins_belongs_to_none(alice: Host, bob: Host) -> None:
    """The person's turn was quicker than the delivery, and what its model sent went into a peer's thread."""
    alice.team("send bob Fix the parser")
    bob.answers = False
    for event in (Poll(), READY, READY):
        bob.tell(event)
    assert bob.delivered is not None
    bob.tool("team_send", to="alice", kind="note", subject="By the way", body="x")
    bob.tell(NotStarted(bob.delivered.delivery))
    assert [message.parent_id for message in bob.messages() if message.kind == "note"] == [None]


def test_failed_work_is_not_asked_for_again_by_the_turn_that_hears_of_it(alice: Host, bob: Host) -> None:
    """A note in the thread goes through, a request does not; the model is told to tell the user."""
    alice.tool("team_send", to="bob", **REQUEST)
    bob.poll()
    bob.settle(None, "error", "overloaded")
    alice.poll()
    answer = alice.tool("team_send", to="bob", kind="request", subject="Again", body="please")
    assert answer["isError"]
    assert answer["text"].startswith("Refused (PARENT_NOT_COMPLETED): ")
    assert "Tell the user what is missing" in answer["text"]
    assert not alice.tool("team_send", to="bob", kind="note", subject="Hm", body="what happened?")["isError"]


@pytest.mark.parametrize(
    ("params", "says"),
    [
        ({"to": "carol", **REQUEST}, "RECIPIENT_UNKNOWN"),
        ({"to": "carol\x1b[31m\n[pi-team] Request", **REQUEST}, "RECIPIENT_UNKNOWN"),
        ({"to": "alice", **REQUEST}, "SELF_ADDRESSED"),
        ({"to": "bob", "kind": "request", "subject": " ", "body": "x"}, "LIMIT_SUBJECT"),
        ({"to": "bob", "kind": "note", "subject": "x", "body": "x" * 16_001}, "LIMIT_BODY"),
        ({"to": "bob", "kind": "result", "subject": "x", "body": "x"}, 'The kind is "request"'),
        ({"to": "bob", "kind": "request", "subject": "x"}, "needs body as text"),
        ({"to": ["bob"], "kind": 1}, "needs to, kind, subject, body as text"),
        ({"to": "bob", **REQUEST, "parent": "x"}, "takes to, kind, subject, body, not parent"),
    ],
)
def test_a_refusal_says_what_to_do(alice: Host, bob: Host, params: dict[str, Any], says: str) -> None:
    """One bounded line for the model, an error result, and nothing queued."""
    answer = alice.tool("team_send", **params)
    assert answer["isError"]
    assert says in answer["text"]
    assert "\n" not in answer["text"]
    assert "\x1b" not in answer["text"]
    assert len(answer["text"]) <= bounds.NOTICE_CHARACTERS
    assert alice.messages() == ()
    assert bob.state == "receiving"


def test_a_repetition_is_refused(alice: Host, bob: Host) -> None:
    """A model that sends twice hears that once was enough."""
    alice.tool("team_send", to="bob", **REQUEST)
    answer = alice.tool("team_send", to="bob", **REQUEST)
    assert "It is queued already. Do not send it again." in answer["text"]
    assert len(bob.messages()) == 1


def test_unknown_tools_and_sessions_without_a_team(host: OpenHost) -> None:
    """Whatever the host passes on is answered."""
    lonely = host("lonely")
    for name in ("team_members", "team_send", "team_status"):
        assert "/team join TEAM ALIAS" in lonely.tool(name)["text"]
    assert "There is no tool team_delete" in lonely.tool("team_delete")["text"]


def test_status_lists_four_things(alice: Host, bob: Host, host: OpenHost) -> None:
    """What I emitted, what is queued for me, results to review, and the work of others without bodies."""
    carol = host("carol")
    carol.team("join crew carol")
    bob.team("pause")
    carol.team("pause")
    alice.team("pause")
    alice.team("send bob From me")
    alice.team("send carol Settled")
    bob.team("send alice For me")
    bob.team("send carol Between others with a SECRET body")
    owner = carol.controller._context.owner
    claimed = carol.mailbox.claim(owner)
    assert claimed is not None
    carol.mailbox.settle(owner, claimed.id, require_report(reports.fitted("completed", "x", ())))
    answer = alice.tool("team_status")
    details = answer["details"]
    found = {
        name: [item["subject"] for item in details[name]["items"]]
        for name in details
        if "To" in name or name in {"emitted", "otherTeamWork"} or name == "queuedForMe"
    }
    assert found == {
        "emitted": ["From me"],
        "queuedForMe": ["For me"],
        "resultsToReview": ["Settled"],
        "otherTeamWork": ["Between others with a SECRET body"],
    }
    assert "body" not in details["otherTeamWork"]["items"][0]
    assert "Your requests without a result: 1" in answer["text"]


def test_status_is_capped_oldest_first(alice: Host, bob: Host) -> None:
    """Twenty of each, and how many are left out."""
    bob.team("pause")
    for number in range(26):
        alice.team(f"send bob Number {number:02}")
    answer = alice.tool("team_status")
    emitted = answer["details"]["emitted"]
    assert [item["subject"] for item in emitted["items"]] == [f"Number {number:02}" for number in range(20)]
    assert emitted["omitted"] == 6
    assert "6 more, left out here" in answer["text"]
    assert len(json.dumps(answer)) < 30_000
