"""Requests of the host as events of the controller, and its effects as messages to the host."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pi_team.errors import ProtocolError
from pi_team.limits import CWD_CHARACTERS, IDENTIFIER_CHARACTERS
from pi_team.session.effects import Notify, Remember, Show, ShowState
from pi_team.session.events import (
    Command,
    Complete,
    Readiness,
    Restore,
    Settled,
    Shutdown,
    ToolCall,
    Typed,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from pi_team.hosts.pi.wire import Identifier
    from pi_team.session.events import Event

Params = dict[str, Any]

PROTOCOL: Final = 1
"""The version of what is spoken between the two."""
MODES: Final = ("tui", "rpc")
"""Where a person, or an editor on a person's behalf, can see and stop what is going on."""


def text(params: Params, name: str) -> str:
    """A parameter that is text. Raises ProtocolError."""
    value = params.get(name)
    if not isinstance(value, str):
        raise ProtocolError(f"{name} is not text")
    return value


def texts(params: Params, name: str) -> tuple[str, ...]:
    """A parameter that is a list of text, or is missing. Raises ProtocolError."""
    value = params.get(name, [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise ProtocolError(f"{name} is not a list of text")
    return tuple(value)


def optional_text(params: Params, name: str) -> str | None:
    """A parameter that is text, null or missing. Raises ProtocolError."""
    return None if params.get(name) is None else text(params, name)


def readiness(params: Params | None) -> Readiness:
    """The host's readiness; an answer that is none means that it is not ready."""
    given = {} if params is None else params
    names = ("model", "idle", "queued", "prompt", "editorEmpty")
    if not all(isinstance(given.get(name), bool) for name in names):
        return Readiness(model=False, idle=False, queued=True, prompt=True, editor_empty=False)
    return Readiness(*(given[name] for name in names))


def identity(params: Params) -> tuple[str, str, int]:
    """The session's id, its directory and the host's process, of a `hello`. Raises ProtocolError."""
    session, pid = params.get("session"), params.get("pid")
    if not isinstance(session, dict):
        raise ProtocolError("session is not an object")
    if not isinstance(pid, int) or isinstance(pid, bool):
        raise ProtocolError("pid is not an integer")
    name, cwd = text(session, "id"), text(session, "cwd")
    if not 1 <= len(name) <= IDENTIFIER_CHARACTERS or not 1 <= len(cwd) <= CWD_CHARACTERS:
        raise ProtocolError("the session's id or cwd is empty or too long")
    return name, cwd, pid


def _settled(_: Identifier, params: Params) -> Event:
    return Settled(
        optional_text(params, "text"),
        text(params, "stop"),
        optional_text(params, "error"),
        texts(params, "files"),
    )


EVENTS: dict[str, Callable[[Identifier, Params], Event]] = {
    "restore": lambda _, params: Restore(params.get("entry"), params.get("reason") == "helper"),
    "command": lambda call, params: Command(call, text(params, "line")),
    "complete": lambda call, params: Complete(call, text(params, "prefix")),
    "tool": lambda call, params: ToolCall(call, text(params, "name"), params.get("params")),
    "typed": lambda _, params: Typed(texts(params, "files")),
    "settled": _settled,
    "shutdown": lambda _call, _params: Shutdown(),
}
"""The host's requests, `hello` apart. Each may raise ProtocolError."""
LATER = (Command, Complete, ToolCall)
"""Events that the controller itself answers; the others are answered when they are handled."""


def notification(effect: ShowState | Remember | Show | Notify) -> Params:
    """An effect that the host is only told of."""
    match effect:
        case ShowState():
            params = {
                "state": effect.state,
                "team": effect.team,
                "alias": effect.alias,
                "widget": effect.widget,
                "rules": effect.rules,
                "tools": effect.tools,
            }
            return {"method": "state", "params": params}
        case Remember():
            return {"method": "remember", "params": {"entry": effect.entry}}
        case Show():
            return {"method": "show", "params": {"entry": effect.entry}}
        case Notify():
            return {"method": "notify", "params": {"level": effect.level, "text": effect.text}}
