"""A team that tests drive through the pure operations."""

from __future__ import annotations

import inspect
from itertools import count
from typing import Any

import pytest

from pi_team.domain import operations as op
from pi_team.domain.codec import TeamCodec
from pi_team.domain.model import Membership, Message, Report, Verdict


class Crew:
    """A team with a clock, ids and judgements that the test sets, and the memberships of who joined."""

    def __init__(self) -> None:
        self.state = op.create("crew")
        self.now = 1_000_000.0
        self.verdicts: dict[str, Verdict] = {}
        self.asked: list[str] = []
        self.seats: dict[str, Membership] = {}
        self._numbers = count(1)
        self._reader = TeamCodec("crew")

    def judge(self, alias: str, token: str) -> Verdict:
        member = self.state.member(alias)
        assert member is not None
        assert member.token == token
        self.asked.append(alias)
        return self.verdicts.get(alias, "alive")

    def new_id(self) -> str:
        return f"id{next(self._numbers)}"

    def attempt(self, operation: Any, *args: Any, **kwargs: Any) -> op.Change[Any]:
        """What an operation makes of the team; clock, judge and ids are given where it asks for them."""
        given = {"now": self.now, "judge": self.judge, "new_id": self.new_id}
        asked = inspect.signature(operation).parameters
        change: op.Change[Any] = operation(
            self.state, *args, **({name: value for name, value in given.items() if name in asked} | kwargs)
        )
        read = self._reader.decode(TeamCodec("crew").encode(change.state))  # whatever comes out can be stored
        assert (read.members, read.messages) == (change.state.members, change.state.messages)
        return change

    def do(self, operation: Any, *args: Any, **kwargs: Any) -> Any:
        """The operation's answer, the team being what the operation made of it."""
        change = self.attempt(operation, *args, **kwargs)
        self.state = change.state
        return change.unwrap()

    def join(self, *aliases: str, session: str | None = None, pid: int = 7) -> Membership:
        for alias in aliases:
            self.seats[alias] = self.do(
                op.join,
                alias=alias,
                session=session or f"session-{alias}",
                cwd=f"/home/{alias}",
                pid=pid,
                token=self.new_id(),
            )
        return self.seats[aliases[-1]]

    def send(self, sender: str, to: str, kind: str = "request", **values: Any) -> Message:
        values = {"subject": "S", "body": self.new_id()} | values
        message: Message = self.do(op.send, self.seats[sender], to=to, kind=kind, **values)
        return message

    def claim(self, alias: str, **values: Any) -> Message | None:
        message: Message | None = self.do(op.claim, self.seats[alias], **values)
        return message

    def settle(self, alias: str, message: Message, outcome: Any = "completed", body: str = "done") -> bool:
        answer: bool = self.do(op.settle, self.seats[alias], message.id, Report(outcome, body))
        return answer

    def worked(self, sender: str, worker: str, outcome: Any = "completed", **values: Any) -> Message:
        """A request that was worked on; answers its result."""
        request = self.send(sender, worker, **values)
        assert self.claim(worker, message_id=request.id) is not None
        self.settle(worker, request, outcome)
        return self.result(request)

    def result(self, request: Message) -> Message:
        result = self.state.result_of(request.id)
        assert result is not None
        return result

    def message(self, message: Message) -> Message:
        """A message as it is now."""
        found = self.state.message(message.id)
        assert found is not None
        return found

    def summary(self) -> list[str]:
        """One line a message: kind, ends, state, and whether it bears a claim."""
        return [
            f"{one.kind} {one.sender}>{one.recipient} {one.state}{' claimed' if one.claim else ''}"
            for one in self.state.messages
        ]

    def statuses(self) -> dict[str, str]:
        return {member.alias: member.status for member in self.state.members}


@pytest.fixture
def crew() -> Crew:
    """An empty team called crew."""
    return Crew()


@pytest.fixture
def pair() -> Crew:
    """A team of two living members, a and b."""
    crew = Crew()
    crew.join("a", "b")
    return crew
