"""The team that the Pi processes of a test share, seen from outside and by a member in the test itself."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pi_host.process import PATIENCE
from pi_team.domain.model import Report
from pi_team.mailbox import Mailbox

if TYPE_CHECKING:
    from collections.abc import Callable

    from pi_team.domain.model import Member, Message
    from pi_team.domain.views import TeamView

Found = TypeVar("Found")


class Team:
    """A team as the record has it.

    Args:
        teams: the directory of the teams.
        name: its name; it is created.
    """

    def __init__(self, teams: str | os.PathLike[str], name: str) -> None:
        self.mailbox = Mailbox(teams)
        self.name = name
        self.mailbox.create(name)

    def view(self) -> TeamView:
        return self.mailbox.look(self.name)

    def messages(self, **fields: object) -> list[Message]:
        """The messages with these fields, in record order."""
        return matching(self.view(), fields)

    def message(self, message_id: str) -> Message:
        """One message, by its id."""
        (message,) = self.messages(id=message_id)
        return message

    def member(self, alias: str) -> Member:
        return next(place.member for place in self.view().members if place.member.alias == alias)

    def displayed(self, alias: str) -> str:
        """The status that is shown of a member."""
        return next(place.displayed for place in self.view().members if place.member.alias == alias)

    def until(self, found: Callable[[TeamView], Found], patience: float = PATIENCE) -> Found:
        """The first true answer, asked anew whenever the record changes."""
        deadline = time.monotonic() + patience
        with self.mailbox.changes(self.name) as changes:
            while not (answer := found(self.view())):
                left = deadline - time.monotonic()
                assert left > 0, f"it never came to that:\n{self.story()}"
                changes.wait(min(left, 0.2))  # what presence shows changes without the record
        return answer

    def has(self, patience: float = PATIENCE, **fields: object) -> Message:
        """The first message with these fields, once there is one."""
        return self.until(lambda view: matching(view, fields), patience)[0]

    def result_of(self, request_id: str, patience: float = PATIENCE) -> Message:
        """The result of a request, once there is one; there is never another."""
        self.has(kind="result", parent_id=request_id, patience=patience)
        (result,) = self.messages(kind="result", parent_id=request_id)
        return result

    def beats(self, alias: str, count: int) -> None:
        """Return when a member's presence was rewritten so many times: its session polls before it."""
        presence = os.path.join(self.mailbox.path, self.name, "presence", f"{alias}.json")
        deadline = time.monotonic() + PATIENCE
        seen = os.stat(presence).st_ino
        while count and time.monotonic() < deadline:
            time.sleep(0.02)  # what is replaced by a rename tells nobody
            now = os.stat(presence).st_ino
            count, seen = count - (now != seen), now
        assert not count, f"{alias} has ceased to beat"

    def story(self) -> str:
        """Everything in the record, a line each."""
        view = self.view()
        members = [
            f"{place.member.alias}: {place.member.status}, {place.displayed}" for place in view.members
        ]
        return "\n".join([*members, *(str(message)[:400] for message in view.messages)])

    def join(self, alias: str) -> Peer:
        """Be a member in the test's own process."""
        return Peer(self, alias)


def matching(view: TeamView, fields: dict[str, object]) -> list[Message]:
    """The messages with these fields, in record order."""
    return [
        message
        for message in view.messages
        if all(getattr(message, name) == value for name, value in fields.items())
    ]


class Peer:
    """A member in the test's own process, whose turns are the test's."""

    def __init__(self, team: Team, alias: str) -> None:
        self._team = team
        self.owner = team.mailbox.join(team.name, alias)

    def send(
        self, to: str, body: str, *, kind: Literal["request", "note"] = "request", **options: Any
    ) -> str:
        """Queue a message; its id."""
        subject = options.pop("subject", body[:40].splitlines()[0])
        message = self._team.mailbox.send(self.owner, to, kind=kind, subject=subject, body=body, **options)
        return message.id

    def answer(self, request: Message, text: str, *files: str) -> None:
        """Claim a message and settle it as completed."""
        claimed = self._team.mailbox.claim(self.owner, message_id=request.id)
        assert claimed is not None
        self._team.mailbox.settle(self.owner, request.id, Report("completed", text, files))

    def verify(self, result: Message) -> None:
        """Take a result and be content with it."""
        self.answer(result, "")

    def leave(self) -> None:
        self._team.mailbox.leave(self.owner)
