"""The payload as text and as values: byte for byte there and back, and nothing of a newer peer's lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_team.domain.codec import PayloadNotJson, SchemaBroken, TeamCodec
from pi_team.domain.model import FRAME, Report, TeamState, changed_member, changed_message
from pi_team.json_text import canonical
from pi_team.limits import JSON_DEPTH

DATA = Path(__file__).parent / "data"
FULL = (DATA / "full.payload.json").read_text()  # written by the TypeScript pi-team, as all of these
LEFT = (DATA / "left.payload.json").read_text()

MEMBER: dict[str, Any] = {
    "team": "crew",
    "alias": "a",
    "session": "s",
    "token": "t",
    "cwd": "/",
    "pid": 1,
    "seen": 0,
    "status": "idle",
}
MESSAGE: dict[str, Any] = {
    "id": "m1",
    "team": "crew",
    "from": "a",
    "to": "b",
    "subject": "S",
    "body": "",
    "kind": "request",
    "state": "pending",
    "created": 1,
    "rootId": "m1",
}
REPORT: dict[str, Any] = {"outcome": "failed", "body": "no", "files": ["f"], "tests": []}


def payload(members: Any = (), messages: Any = (), **others: Any) -> str:
    value: dict[str, Any] = {"version": 1, "members": list(members), "messages": list(messages)}
    return canonical(value | others)


def decode(text: str) -> TeamState:
    return TeamCodec("crew").decode(text)


@pytest.mark.parametrize(("team", "text"), [("crew", FULL), ("gone", LEFT)])
def test_a_peers_payload_survives_to_the_byte(team: str, text: str) -> None:
    """Every kind of character, lone surrogates included, is written as it was read."""
    codec = TeamCodec(team)
    assert codec.encode(codec.decode(text)) == text


def test_the_fields_are_read() -> None:
    """The names that the record uses lead to the attributes that the operations use."""
    state = decode(FULL)
    assert [member.alias for member in state.members] == ["lead", "coder", "reviewer"]
    result = state.messages[1]
    assert (result.sender, result.recipient, result.kind, result.state) == (
        "coder",
        "lead",
        "result",
        "completed",
    )
    assert result.parent_id == result.root_id == state.messages[0].id
    assert result.claim == state.members[0].token
    assert result.report == Report("completed", result.body, ("src/é.ts", 'a"b\\c'), ("npm test: passed",))
    assert state.messages[0].parent_id is None
    assert state.messages[0].report is None
    assert state.member("coder") is state.members[1]
    assert state.message(result.id) is result
    assert state.member("nobody") is None
    assert state.message("none") is None


def test_a_reformatted_payload_is_read_and_written_canonically() -> None:
    """Somebody looked at the record with an editor that indents."""
    assert TeamCodec("crew").encode(decode(json.dumps(json.loads(FULL), indent=2))) == FULL


def test_unknown_keys_keep_their_place() -> None:
    """A newer peer's data is not lost by this release, in the payload, a member, a message or a report."""
    text = canonical(
        {
            "next": {"b": 1, "a": [None]},
            "messages": [MESSAGE | {"9": 1.5, "flag": True, "result": REPORT | {"more": 1}}],
            "version": 1,
            "members": [{"first": None} | MEMBER],
            "7": "seven",
        }
    )
    codec = TeamCodec("crew")
    state = codec.decode(text)
    assert codec.encode(state) == text
    assert [key for key, _ in state.frame] == ["7", "next", "messages", "version", "members"]


def test_a_changed_copy_keeps_order_and_unknown_keys() -> None:
    """Only the changed values differ; a claim comes last when it is set and leaves no trace when removed."""
    state = decode(payload([MEMBER | {"x": 1}], [MESSAGE | {"x": 1}]))
    message = state.messages[0]
    claimed = changed_message(message, claim="t", state="processing")
    assert claimed.text == canonical(MESSAGE | {"state": "processing", "x": 1, "claim": "t"})
    assert (claimed.claim, claimed.state) == ("t", "processing")
    assert changed_message(claimed, claim=None, state="pending").text == message.text
    assert changed_member(state.members[0], seen=5.5).text == canonical(MEMBER | {"seen": 5.5, "x": 1})


def test_what_did_not_change_is_reused() -> None:
    """A record read again after a write is parsed only where it changed: in the middle, and at the end."""
    messages = [MESSAGE | {"id": f"m{number}"} for number in range(60)]
    codec = TeamCodec("crew")
    before = codec.decode(payload([MEMBER], messages))
    changed = [
        *messages[:41],
        messages[41] | {"state": "interrupted"},
        *messages[42:],
        MESSAGE | {"id": "m60"},
    ]
    after = codec.decode(payload([MEMBER], changed))
    fresh = [index for index, message in enumerate(after.messages) if message not in before.messages]
    assert fresh == [41, 60]
    for index, message in enumerate(before.messages):
        assert (after.messages[index] is message) == (index != 41)
    assert after.members[0] is before.members[0]
    assert codec.encode(after) == payload([MEMBER], changed)


def test_the_same_text_is_the_same_state() -> None:
    """An unchanged record, and one's own write read back, cost nothing."""
    codec = TeamCodec("crew")
    state = codec.decode(payload([MEMBER]))
    assert codec.decode(payload([MEMBER])) is state
    changed = TeamState("crew", state.members, decode(payload([], [MESSAGE])).messages, state.frame)
    assert codec.decode(codec.encode(changed)) is changed


@given(st.data())
def test_reading_incrementally_equals_reading_afresh(data: st.DataObject) -> None:
    """Whatever was read before, a text means the same: reuse must not show."""
    bodies = st.lists(st.sampled_from(["", "}", "{", '"},{"', "é"]), max_size=12)
    codec = TeamCodec("crew")
    for _ in range(3):
        messages = [MESSAGE | {"body": body} for body in data.draw(bodies)]
        members = [MEMBER | {"cwd": cwd} for cwd in data.draw(bodies)]
        text = payload(members, messages)
        if data.draw(st.booleans()):
            text = json.dumps(json.loads(text), indent=1)
        warm, cold = codec.decode(text), decode(text)
        assert (warm.members, warm.messages, warm.frame) == (cold.members, cold.messages, cold.frame)
        assert codec.encode(warm) == payload(members, messages)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        payload([MEMBER])[:-1],
        payload([MEMBER]) + "x",
        '{"version":1,"version":1,"members":[],"messages":[]}',
        '{"version":1,"members":[],"messages":[],"messages":[]}',
        '{"version":1,"members":[{"team":"crew","team":"crew"}],"messages":[]}',
        '{"version":NaN,"members":[],"messages":[]}',
        '{"version":2,"members":[',
        '{"version":1,"members":{},"messages":[1e999]}',
        payload()[:-1] + ',"x":' + "[" * JSON_DEPTH + "]" * JSON_DEPTH + "}",
    ],
)
def test_what_is_not_json_is_said_to_be_damaged(text: str) -> None:
    """Damage is passed over by a writer and a broken schema is not: of two faults, the first decides."""
    for codec in (TeamCodec("crew"), warm_codec()):
        with pytest.raises(PayloadNotJson):
            codec.decode(text)


def warm_codec() -> TeamCodec:
    codec = TeamCodec("crew")
    codec.decode(payload([MEMBER], [MESSAGE]))
    return codec


def without(value: dict[str, Any], key: str) -> dict[str, Any]:
    return {name: item for name, item in value.items() if name != key}


BROKEN_MEMBERS = [
    *[without(MEMBER, key) for key in MEMBER],
    *[MEMBER | {key: None} for key in MEMBER],
    *[MEMBER | {"alias": alias} for alias in ("", "A", "a\n", "1a", "a" * 49, "ä", "a b")],
    *[MEMBER | {"pid": pid} for pid in (0, -1, 1.5, True, "1")],
    *[MEMBER | {"seen": seen} for seen in (-1, "0", True)],
    MEMBER | {"status": "away"},
    MEMBER | {"session": ""},
    MEMBER | {"token": ""},
    MEMBER | {"team": "other"},
    [],
    "member",
]
BROKEN_MESSAGES = [
    *[without(MESSAGE, key) for key in MESSAGE],
    *[MESSAGE | {key: None} for key in (*MESSAGE, "parentId", "claim", "result")],
    *[MESSAGE | {"result": without(REPORT, key)} for key in REPORT],
    *[MESSAGE | {"result": REPORT | {key: 1}} for key in REPORT],
    *[MESSAGE | {"result": REPORT | {key: [1]}} for key in ("files", "tests")],
    *[MESSAGE | {key: ""} for key in ("id", "subject", "rootId", "parentId", "claim")],
    MESSAGE | {"kind": "letter"},
    MESSAGE | {"state": "done"},
    MESSAGE | {"state": ["pending"]},
    MESSAGE | {"to": "B"},
    MESSAGE | {"team": "other"},
    None,
]


@pytest.mark.parametrize(
    "text",
    [
        *[payload([broken]) for broken in BROKEN_MEMBERS],
        *[payload([], [MESSAGE, broken]) for broken in BROKEN_MESSAGES],
        *[canonical(without(json.loads(payload()), key)) for key in ("version", "members", "messages")],
        *[payload(version=version) for version in (0, 2, "1", True, None)],
        '{"version":1,"members":{},"messages":[]}',
        '{"version":1,"members":[],"messages":"[]"}',
        "[]",
        "null",
        '"{}"',
    ],
)
def test_what_breaks_the_schema_is_refused(text: str) -> None:
    """A value that the lifecycles have no rule for must not be worked on, whichever way it was read."""
    for codec in (TeamCodec("crew"), warm_codec()):
        with pytest.raises(SchemaBroken):
            codec.decode(text)


def test_longer_and_more_than_we_write_is_read() -> None:
    """A peer that counts grapheme clusters, or overfills a team, has not made the record corrupt."""
    members = [
        MEMBER | {"alias": f"a{number}", "session": "s" * 200, "cwd": "/" * 5000} for number in range(101)
    ]
    long = MESSAGE | {"subject": "s" * 500, "body": "b" * 20_000, "result": REPORT | {"files": ["f"] * 60}}
    state = decode(payload(members, [long] * 501))
    assert (len(state.members), len(state.messages)) == (101, 501)


def test_numbers_of_old_records_are_read() -> None:
    """Times may be fractional and a process number may be written as a double."""
    text = (
        '{"version":1.0,"members":[' + canonical(MEMBER).replace('"pid":1', '"pid":7.0') + '],"messages":[]}'
    )
    state = decode(text.replace('"seen":0', '"seen":0.25'))
    assert (state.members[0].pid, state.members[0].seen) == (7, 0.25)
    assert '"pid":7,"seen":0.25' in TeamCodec("crew").encode(state)


def test_a_state_is_written_only_under_its_own_name() -> None:
    """The team's name is in every member and message, so another codec's text would break the schema."""
    with pytest.raises(ValueError, match="'other' is not a payload of 'crew'"):
        TeamCodec("crew").encode(TeamState("other", (), (), FRAME))


def test_tokens_do_not_show_in_tracebacks() -> None:
    """An ownership token in a log would be worth as much as the membership."""
    state = decode(FULL)
    assert not any(member.token in repr(state) for member in state.members)
