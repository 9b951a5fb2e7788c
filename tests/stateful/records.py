"""The records of a teams directory, read as they are and checked one by one."""

from __future__ import annotations

import os
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import evidence
import team_invariants
from pi_team.domain.codec import TeamCodec
from plain import Member, Message, Team
from possible import Violation

if TYPE_CHECKING:
    from pathlib import Path


class Records:
    """What the records say, in the terms of `plain`.

    Args:
        path: the teams directory.

    Attributes:
        teams: what was found last, by the names of the directories.
        ids: the keys of messages -> their ids.
        aliases: sessions -> the aliases that they ever had.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.teams: dict[str, Team] = {}
        self.ids: dict[str, str] = {}
        self.aliases: defaultdict[str, set[str]] = defaultdict(set)
        self._keys: dict[str, str] = {}
        self._sessions: dict[str, str] = {}
        self._cancelled: set[str] = set()
        self._written: dict[int, int] = {}  # inodes of team directories -> revisions
        self._shown: dict[int, int] = {}
        self._pins: list[int] = []

    def close(self) -> None:
        """Let go of the directories."""
        for fd in self._pins:
            os.close(fd)

    def names(self) -> list[str]:
        """The teams that there are."""
        return sorted(name for name in os.listdir(self._path) if not name.startswith("."))

    def _directory(self, name: str) -> int:
        """What tells a team's directory from every other: it stays open, so that its number is not reused."""
        fd = os.open(self._path / name, os.O_DIRECTORY | os.O_RDONLY)
        inode = os.fstat(fd).st_ino
        if inode in self._written:
            os.close(fd)
        else:
            self._pins.append(fd)
            self._written[inode] = self._shown[inode] = 0
        return inode

    def read(self) -> tuple[dict[str, Team], set[str]]:
        """All teams, and the names of those that are behind what was shown of them.

        Raises:
            Violation: a revision went back, or an invariant does not hold.
        """
        found, behind = {}, set()
        for name in self.names():
            record = evidence.record(self._path / name)
            inode, revision = self._directory(name), record["revision"]
            if revision < self._written[inode]:
                raise Violation("Forward", f"team {name} went from {self._written[inode]} to {revision}")
            self._written[inode] = revision
            found[name] = self._team(record["payload"], name)
            if revision < self._shown[inode]:
                behind.add(name)
        return found, behind

    def show(self, name: str, view: dict[str, Any]) -> Team:
        """What a look has shown. Raises Violation as :meth:`read`."""
        inode, revision = self._directory(name), view["revision"]
        if revision < max(self._shown[inode], self._written[inode]):
            raise Violation("Forward", f"a look at team {name} goes back to revision {revision}")
        self._shown[inode] = revision
        keys = ("alias", "cwd", "pid", "seen", "session", "status", "team", "token")
        members = [{key: member[key] for key in keys} for member in view["members"]]
        return self._team({"version": 1, "members": members, "messages": view["messages"]}, name)

    def _team(self, payload: dict[str, Any], name: str) -> Team:
        for member in payload["members"]:
            self._sessions[member["token"]] = member["session"]
            self.aliases[member["session"]].add(member["alias"])
        for message in payload["messages"]:
            key = f"{message['kind']} {message['subject']}"
            if (
                self._keys.setdefault(message["id"], key) != key
                or self.ids.setdefault(key, message["id"]) != message["id"]
            ):
                raise Violation("Once", f"{key} is there as {self.ids[key]} and as {message['id']}")
        everything = (*payload["members"], *payload["messages"])
        team = Team(
            everything[0]["team"] if everything else name,
            tuple(
                Member(one["alias"], one["session"], one["status"] != "offline") for one in payload["members"]
            ),
            tuple(self._message(one) for one in payload["messages"]),
        )
        self._check(team, payload)
        return team

    def _message(self, value: dict[str, Any]) -> Message:
        return Message(
            value["kind"],
            value["subject"],
            value["from"],
            value["to"],
            thread=self._keys[value["rootId"]],
            parent=self._keys[value["parentId"]] if "parentId" in value else "",
            state=value["state"],
            claim=self._sessions[value["claim"]] if "claim" in value else "",
            outcome=value["result"]["outcome"] if "result" in value else "",
        )

    def _check(self, team: Team, payload: dict[str, Any]) -> None:
        """What the invariants say of a payload, which holds together with them. Raises Violation."""
        self._note_cancelled(team)
        try:
            state = TeamCodec(team.title).decode(evidence.javascript_text(payload))
            team_invariants.check(state, self._cancelled)
        except AssertionError as error:
            invariant, _, text = str(error).partition(": ")
            raise Violation(invariant, f"{text} of team {team.title}") from error

    def _note_cancelled(self, team: Team) -> None:
        """A request may end without a result only together with the membership of its emitter."""
        before = {one.key: one for found in self.teams.values() for one in found.messages}
        answered = {one.parent for one in team.messages if one.kind == "result"}
        present = {member.session for member in team.members}
        for request in team.messages:
            if (request.kind, request.state) == ("request", "interrupted") and request.key not in answered:
                emitter = before.get(request.key, request).sender
                holders = [
                    member.session
                    for found in self.teams.values()
                    for member in found.members
                    if member.alias == emitter
                ]
                if not present.intersection(holders):
                    self._cancelled.add(self.ids[request.key])
