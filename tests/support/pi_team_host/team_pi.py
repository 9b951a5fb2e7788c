"""A Pi over RPC that has the extension, and what a person and a test see of it."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, Final, Protocol

import psutil

import pi_team
from pi_host.process import PATIENCE
from pi_host.rpc import Record, RpcPi

if TYPE_CHECKING:
    from collections.abc import Callable

    from pi_host.home import PiHome

EXTENSION: Final = os.path.join(os.path.dirname(pi_team.__file__), "hosts", "pi", "extension")
BRIDGE: Final = "pi_team.hosts.pi"
_PYTHON: Final = "PI_TEAM_PYTHON"


class StartTeamPi(Protocol):
    """Starts a Pi with the extension; the options are those of `TeamPi`."""

    def __call__(self, *words: str, **options: Any) -> TeamPi: ...


class StartMembers(Protocol):
    """Starts a Pi for each alias, given with its model, and makes each a member of the team."""

    def __call__(self, **models: str) -> list[TeamPi]: ...


class TeamPi(RpcPi):
    """One Pi process with the extension, `before` and after others: Pi tells them in that order.

    Attributes:
        model: the name under which it asks the scripted model.
    """

    def __init__(
        self,
        home: PiHome,
        *words: str,
        model: str = "fake-1",
        python: str = sys.executable,
        env: dict[str, str] | None = None,
        before: tuple[str, ...] = (),
        extensions: tuple[str, ...] = (),
    ) -> None:
        self.model = model
        env = {_PYTHON: python, **(env or {})}
        loaded = (*before, EXTENSION, *extensions)
        super().__init__(home, *words, extensions=loaded, model=model, env=env, name=f"team-{model}")

    # --- what a person does

    def team(self, line: str) -> None:
        """Run a `/team` command; what it shows has been printed when this returns."""
        self.command("prompt", message=f"/team {line}")

    def confirmed(self, line: str, *, yes: bool) -> Record:
        """Run a command that asks first; the question."""
        mark = self.mark()
        number = self.send("prompt", message=f"/team {line}")
        question = self.dialog("confirm", after=mark)
        self.answer(question, confirmed=yes)
        self.response(number)
        return question

    def begin(self, text: str) -> None:
        """Prompt, and return when the agent has begun."""
        mark = self.mark()
        self.command("prompt", message=text)
        self.until("agent_start", after=mark)

    # --- what is seen

    @property
    def widget(self) -> str:
        """The line above the editor; "" without one."""
        return "\n".join(self.widgets.get("pi-team", ()))

    def shows(self, *texts: str, patience: float = PATIENCE) -> None:
        """Return when the line above the editor has all of these in it."""
        self.eventually(lambda: all(text in self.widget for text in texts), patience)

    def tells(self, text: str, *, after: int = 0, patience: float = PATIENCE) -> str:
        """The level of the notification with that text, once it has come, after so many others."""

        def found() -> list[str]:
            return [level for level, said in self.notifications[after:] if text in said]

        self.eventually(found, patience)
        return found()[0]

    def entries(self, custom_type: str) -> list[Any]:
        """The data of the session entries of that type that were appended while it runs."""
        return [
            record["entry"]["data"]
            for record in list(self.records)
            if record["type"] == "entry_appended" and record["entry"].get("customType") == custom_type
        ]

    def shown(self, kind: str) -> list[Any]:
        """What was put into the transcript outside the model's context: notes, rosters and so on."""
        return [entry for entry in self.entries("pi-team") if entry["kind"] == kind]

    @property
    def memberships(self) -> list[Any]:
        """What the session keeps of its membership, the newest last."""
        return self.entries("pi-team-membership")

    def delivered(self) -> list[Any]:
        """The messages with which turns of the team have begun."""
        return [
            record["message"]
            for record in list(self.records)
            if record["type"] == "message_start" and record["message"].get("customType") == "pi-team-message"
        ]

    def settles(self, *, after: int, patience: float = PATIENCE) -> Record:
        """The agent's next settling after that mark."""
        return self.until("agent_settled", after=after, patience=patience)

    # --- the Python side

    def helpers(self) -> list[psutil.Process]:
        """The processes of the Python side."""
        return [process for process in self.process.family() if _is_bridge(process)]

    def helper(self) -> psutil.Process:
        """The Python side, of which there is exactly one."""
        (helper,) = self.helpers()
        return helper

    def other_helper(self, former: psutil.Process) -> psutil.Process:
        """The Python side that took the place of one that has ended, once its session is a member again."""
        self.eventually(lambda: self.widget and [each for each in self.helpers() if each != former])
        return self.helper()


def _is_bridge(process: psutil.Process) -> bool:
    try:
        return any(BRIDGE in word for word in process.cmdline())
    except psutil.Error:
        return False


def quiet(pi: RpcPi, holds: Callable[[], object]) -> None:
    """Assert that it holds once everything that Pi has printed so far was read."""
    pi.state()
    assert holds()
