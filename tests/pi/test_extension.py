"""The extension in the real Pi, over RPC: what it does, and above all what it does not do."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any, Final

import pytest

from pi_host.model_server import Call, Reply
from pi_member import gone, helpers, mailbox, notices, put_in, results, script, shown, told
from pi_team.domain.lifecycles import membership_of
from pi_team.hosts.pi.installation import EXTENSION
from pi_team.limits import HEARTBEAT_INTERVAL

if TYPE_CHECKING:
    from pathlib import Path

    from pi_host.home import PiHome
    from pi_host.model_server import ModelServer
    from pi_host.rpc import RpcPi, StartRpc
    from pi_host.terminal import StartTerminal

TOOLS: Final = {"team_members", "team_send", "team_status"}


@pytest.fixture
def installed(pi_home: PiHome) -> PiHome:
    put_in(pi_home)
    return pi_home


def joined(pi: RpcPi, alias: str = "coder") -> RpcPi:
    """The session as a member of crew."""
    pi.ask(f"/team join crew {alias}")
    pi.eventually(lambda: f"crew · {alias} · " in str(pi.widgets))
    return pi


@pytest.fixture
def crew(installed: PiHome) -> PiHome:
    with mailbox(installed) as teams:
        teams.create("crew")
    return installed


def connected(home: PiHome) -> dict[str, bool]:
    """Who is there, as the record and the presence say."""
    with mailbox(home) as teams:
        return {each.member.alias: each.displayed != "offline" for each in teams.look("crew").members}


# --- being installed


@pytest.mark.usefixtures("installed")
def test_being_installed_joins_nothing_starts_nothing_and_tells_the_model_nothing(
    start_rpc: StartRpc, model_server: ModelServer
) -> None:
    """A session of somebody who uses no team pays for it: a process, tools, words in its context."""
    pi = start_rpc()
    assert "team" in {command["name"] for command in pi.command("get_commands")["commands"]}
    model_server.script("fake-1", "hello")
    pi.ask("hi")
    request = model_server.asked("fake-1")
    assert not TOOLS & request.tools
    assert "<pi-team>" not in request.system
    mark = pi.mark()
    pi.ask("/team")  # the usage is known without Python
    assert "/team join TEAM ALIAS" in str(shown(pi, after=mark))
    assert pi.process.family() == []
    assert (pi.widgets, pi.notifications) == ({}, [])
    assert pi.close() == 0


def test_a_session_joins_gets_its_tools_and_loses_them_when_it_leaves(
    crew: PiHome, start_rpc: StartRpc, model_server: ModelServer
) -> None:
    """The whole way there and back: widget, rules, tools, and the record."""
    pi = start_rpc()
    pi.ask("/team list")
    assert shown(pi)[0]["kind"] == "list"
    assert "crew" in str(shown(pi)[0])
    joined(pi)
    assert connected(crew) == {"coder": True}
    model_server.script("fake-1", Reply(Call("team_members", {})), "nobody else", "goodbye")
    assert pi.ask("who is there?") == "nobody else"
    request = model_server.asked("fake-1")
    assert request.tools >= TOOLS
    assert request.system.count("<pi-team>") == 1
    assert "coder" in request.system
    pi.ask("/team leave")
    pi.eventually(lambda: pi.widgets == {})
    assert connected(crew) == {"coder": False}
    pi.ask("bye")
    last = model_server.asked("fake-1", 3)
    assert not TOOLS & last.tools
    assert "<pi-team>" not in last.system
    assert pi.close() == 0
    assert notices(pi, "error") == []


def test_tools_that_a_person_has_excluded_stay_out(
    crew: PiHome, start_rpc: StartRpc, model_server: ModelServer
) -> None:
    """`--tools` on the command line is a local rule, and local rules win."""
    pi = joined(start_rpc("--tools", "read,team_status"))
    model_server.script("fake-1", "hello", "hello")
    pi.ask("hi")
    assert model_server.asked("fake-1").tools == {"read", "team_status"}
    pi.ask("/team leave")
    joined(pi)
    pi.ask("hi")
    assert model_server.asked("fake-1", 2).tools == {"read", "team_status"}
    assert connected(crew) == {"coder": True}


def test_a_request_becomes_a_turn_and_its_end_a_result(
    crew: PiHome, start_rpc: StartRpc, model_server: ModelServer
) -> None:
    """Text, files and outcome of a turn reach the emitter; paths are absolute, failed edits are left out."""
    joined(start_rpc())
    calls = [
        Call("write", {"path": "new.txt", "content": "x"}),
        Call("write", {"path": "@at.txt", "content": "x"}),
        Call("edit", {"path": "missing.txt", "edits": [{"oldText": "a", "newText": "b"}]}),
    ]
    model_server.script("fake-1", *(Reply("Working.", call) for call in calls), "All done.")
    with mailbox(crew) as teams:
        lead = teams.join("crew", "lead")
        request = teams.send(lead, "coder", kind="request", subject="Write it", body="Please write it.")
        (result,) = results(teams)
        assert result.parent_id == request.id
        assert result.report is not None
        assert (result.report.outcome, result.report.body) == ("completed", "All done.")
        assert result.report.files == (str(crew.work / "new.txt"), str(crew.work / "at.txt"))
        assert all(os.path.isfile(name) for name in result.report.files)
    context = model_server.asked("fake-1").texts("user")[-1]
    assert "Please write it." in context
    assert context.startswith("[pi-team]")


# --- a Python that is not what it should be

PYTHONS: Final = {
    "missing": (None, "cannot run"),
    "without pi_team": (f'exec {sys.executable} -S "$@"', "No module named"),
    "chattering": ("echo hello; exec cat >/dev/null", "could not be taken"),
    "endless": ("yes | tr -d '\\n'", "a line without an end"),
    "failing": ("echo out of order >&2; exit 3", "out of order"),
    "quiet": ("exit 0", "ended"),
    "hostile": ("printf 'out\\033]0;taken\\007 of \\033[2Jorder\\n' >&2; exit 3", "out of order"),
}


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("what", PYTHONS)
def test_a_python_that_does_not_do_is_told_once_and_pi_lives_on(
    what: str, tmp_path: Path, start_rpc: StartRpc, model_server: ModelServer
) -> None:
    """The environment was removed or broken: an uncaught exception in the extension would end Pi."""
    text, reason = PYTHONS[what]
    python = script(tmp_path / "python", text) if text else str(tmp_path / "python")
    pi = start_rpc(env={"PI_TEAM_PYTHON": python})
    pi.ask("/team list")
    (error,) = notices(pi, "error")
    assert reason in error
    assert "pi-team doctor" in error
    assert "\x1b" not in error
    model_server.script("fake-1", "still here")
    assert pi.ask("hi") == "still here"
    assert gone(pi.process.family())
    assert pi.close() == 0
    assert not [record for record in pi.records if record["type"] == "extension_error"]


def test_without_a_record_of_the_installation_it_is_said_what_to_do(start_rpc: StartRpc) -> None:
    """The extension was put into Pi by hand."""
    pi = start_rpc(extensions=[EXTENSION])
    pi.ask("/team list")
    (error,) = notices(pi, "error")
    assert "pi-team.json" in error
    assert "pi-team pi install" in error
    assert pi.close() == 0


@pytest.mark.usefixtures("installed")
def test_a_project_cannot_put_its_own_python_modules_in_the_way(pi_home: PiHome, start_rpc: StartRpc) -> None:
    """A directory that somebody works in has modules of the names that are imported: they would be run."""
    for name in ("pi_team", "json", "attrs"):
        (pi_home.work / f"{name}.py").write_text("open('was-run', 'w'); raise SystemExit(9)")
    pi = start_rpc()
    pi.ask("/team list")
    assert notices(pi, "error") == []
    assert not (pi_home.work / "was-run").exists()


# --- others in the same Pi

OTHER: Final = """
import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";
import { Type } from "typebox";

export default function (pi: ExtensionAPI): void {
  pi.registerCommand("team", {
    description: "Another one",
    handler: async (_args, ctx) => ctx.ui.notify("the other one answers", "info"),
  });
  pi.registerTool({
    name: "team_send",
    label: "Another",
    description: "Another one",
    parameters: Type.Object({}),
    execute: async () => ({ content: [{ type: "text", text: "sent" }], details: {} }),
  });
}
"""


@pytest.mark.parametrize("order", ["before", "after"])
def test_where_another_extension_has_the_name_it_steps_back(
    order: str, installed: PiHome, start_rpc: StartRpc, model_server: ModelServer
) -> None:
    """As the TypeScript pi-team does: with two of the name Pi would have neither under it."""
    other = installed.extension("other", OTHER)
    if order == "before":
        pi = start_rpc(extensions=[other])
    else:
        installed.write_settings(extensions=[EXTENSION, other])
        pi = start_rpc()
    told(pi, "steps back")
    assert other in told(pi, "steps back")["message"]
    assert [c["name"] for c in pi.command("get_commands")["commands"] if "team" in c["name"]] == ["team"]
    pi.ask("/team list")
    assert ("info", "the other one answers") in pi.notifications
    model_server.script("fake-1", "hello")
    pi.ask("hi")
    assert TOOLS & model_server.asked("fake-1").tools == {"team_send"}
    assert pi.process.family() == []
    assert pi.close() == 0
    assert not [record for record in pi.records if record["type"] == "extension_error"]


def test_a_second_copy_steps_back_and_the_first_works(
    crew: PiHome, tmp_path: Path, start_rpc: StartRpc
) -> None:
    """Installed from two environments, or by hand and by the command."""
    copy = tmp_path / "copy"
    shutil.copytree(EXTENSION, copy)
    pi = start_rpc(extensions=[str(copy)])
    warning = told(pi, "loaded twice")["message"]
    assert str(copy) in warning
    assert EXTENSION in warning
    assert [c["name"] for c in pi.command("get_commands")["commands"] if "team" in c["name"]] == ["team"]
    joined(pi)
    assert len(helpers(pi)) == 1
    assert connected(crew) == {"coder": True}
    mark = pi.mark()
    pi.command("new_session")  # and so it is for the next session of the process
    told(pi, "loaded twice", after=mark)
    joined(pi)
    assert notices(pi, "error") == []


# --- ending


@pytest.mark.parametrize("how", ["closed", "SIGTERM", "SIGHUP"])
def test_an_orderly_end_leaves_the_team_and_no_process(how: str, crew: PiHome, start_rpc: StartRpc) -> None:
    """A helper that outlives its Pi; a member that looks alive and is not."""
    pi = joined(start_rpc())
    processes = helpers(pi)
    assert len(processes) == 1
    if how == "closed":
        assert pi.close() == 0
    else:
        assert pi.interrupt(getattr(signal, how)) == 128 + getattr(signal, how)
    assert gone(processes)
    with mailbox(crew) as teams:
        (entry,) = teams.look("crew").members
        assert membership_of(entry.member) == "offline"


def test_a_helper_that_hangs_holds_up_neither_the_end_nor_survives_it(
    crew: PiHome, start_rpc: StartRpc
) -> None:
    """Storage hangs while Pi is to end: it ends within seconds, and the helper with it."""
    pi = joined(start_rpc())
    (helper,) = helpers(pi)
    helper.suspend()
    began = time.monotonic()
    assert pi.interrupt() == 128 + signal.SIGTERM
    assert time.monotonic() - began < 15
    assert gone([helper])
    assert connected(crew) == {"coder": False}


HURRIED: Final = """
import runpy
import pi_team.hosts.pi.bridge

pi_team.hosts.pi.bridge.IDLE_LIFETIME = 0.05
runpy.run_module("pi_team.hosts.pi", run_name="__main__")
"""
"""The helper, but it gives up waiting for work much sooner."""


def test_a_helper_that_was_not_needed_ends_and_comes_back_when_it_is(
    installed: PiHome, tmp_path: Path, start_rpc: StartRpc
) -> None:
    """After a while without a membership it ends by itself: nothing is said, and the next command works."""
    hurried = tmp_path / "hurried.py"
    hurried.write_text(HURRIED)
    python = script(tmp_path / "python", f"exec {sys.executable} {hurried}")
    pi = start_rpc(env={"PI_TEAM_PYTHON": python})
    for number in range(1, 4):
        pi.ask("/team list")
        assert len(shown(pi)) == number
        assert gone(pi.process.family())
    assert pi.notifications == []
    assert not (installed.agent / "teams" / "crew").exists()


# --- sessions


@pytest.mark.parametrize("mode", ["text", "json"])
def test_a_session_without_a_person_is_refused(mode: str, crew: PiHome, tmp_path: Path) -> None:
    """`pi -p`: nobody would see what teammates ask for, and nothing receives when it has ended."""
    python = script(tmp_path / "python", f"touch {tmp_path / 'was-run'}; exit 1")
    command = crew.command(["--mode", mode, "-p", "/team join crew coder"], extensions=[], model=None)
    ended = subprocess.run(
        command,
        cwd=crew.work,
        env=crew.env({"PI_TEAM_PYTHON": python}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert "only a session with a person joins a team" in ended.stderr
    assert not (tmp_path / "was-run").exists()
    assert connected(crew) == {}


SPOILING: Final = """
import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";

export default function (pi: ExtensionAPI): void {
  pi.on("before_agent_start", (event) => {
    if (event.messageType === "custom") event.systemPromptOptions.sections["no tag name"] = "x";
  });
}
"""
"""Makes that Pi cannot prepare a turn which a message starts."""


def test_a_turn_that_pi_cannot_begin_is_reported_as_failed(crew: PiHome, start_rpc: StartRpc) -> None:
    """Pi tells no extension of it: the request would stay claimed for as long as the session lives."""
    pi = joined(start_rpc(extensions=[crew.extension("spoiling", SPOILING)]))
    with mailbox(crew) as teams:
        teams.send(teams.join("crew", "lead"), "coder", kind="request", subject="Go on", body="Go on.")
        pi.until("extension_error", after=0)
        (result,) = results(teams)
    assert result.report is not None
    assert result.report.outcome == "failed"
    assert "did not start" in result.report.body


LINGERING: Final = """
import { existsSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";

export default function (pi: ExtensionAPI): void {
  pi.on("agent_settled", async () => {
    while (!existsSync("go-on")) await setTimeout(10);
  });
}
"""
"""Takes its time when a run has settled, as one that notifies the person does."""


def test_a_run_that_others_are_told_of_first_has_not_settled(
    crew: PiHome, start_rpc: StartRpc, model_server: ModelServer
) -> None:
    """Pi was idle already, a request began, and then the end of the person's own turn became its result."""
    pi = joined(start_rpc(extensions=[crew.extension("lingering", LINGERING)]))
    model_server.script("fake-1", "Private.", "The work.")
    with mailbox(crew) as teams:
        mark = pi.mark()
        pi.command("prompt", message="hi")
        pi.until("agent_end", after=mark)
        teams.send(teams.join("crew", "lead"), "coder", kind="request", subject="Go on", body="Go on.")
        until = time.monotonic() + 2 * HEARTBEAT_INTERVAL
        while time.monotonic() < until and teams.look("crew").messages[0].state == "pending":
            time.sleep(0.05)
        (crew.work / "go-on").touch()
        (result,) = results(teams)
    assert result.body == "The work."


HESITATING: Final = """
import { existsSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";

export default function (pi: ExtensionAPI): void {
  pi.on("before_agent_start", async ({ messageType }, ctx) => {
    if (messageType === "custom") ctx.ui.notify("hesitating");
    while (messageType === "custom" && !existsSync("go-on")) await setTimeout(10);
  });
}
"""
"""Takes its time before a turn that a message starts, as a compaction does."""


def test_a_takeover_before_the_run_names_no_files_of_an_earlier_one(
    crew: PiHome, start_rpc: StartRpc, model_server: ModelServer
) -> None:
    """The files of the person's own last turn went to the teammate."""
    pi = joined(start_rpc(extensions=[crew.extension("hesitating", HESITATING)]))
    model_server.script("fake-1", Reply(Call("write", {"path": "private.txt", "content": "x"})), "Written.")
    pi.ask("hi")
    model_server.answer = lambda _: Reply("Yes.")
    with mailbox(crew) as teams:
        teams.send(teams.join("crew", "lead"), "coder", kind="request", subject="Go on", body="Go on.")
        told(pi, "hesitating")
        pi.command("prompt", message="it is me", streamingBehavior="steer")
        (result,) = results(teams)
        (crew.work / "go-on").touch()
    assert result.report is not None
    assert (result.report.outcome, result.report.files) == ("interrupted", ())


VERBOSE: Final = """
import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";

export default function (pi: ExtensionAPI): void {
  pi.on("message_end", ({ message }) => {
    if (message.role !== "assistant") return;
    return { message: { ...message, stopReason: "error", errorMessage: "no ".repeat(400_000) } };
  });
}
"""
"""Stands for a provider that answers with a page of an error."""


def test_a_provider_that_says_far_too_much_has_its_turn_reported(
    crew: PiHome, start_rpc: StartRpc, model_server: ModelServer
) -> None:
    """An error longer than a line to the Python side: the request stayed claimed."""
    joined(start_rpc(extensions=[crew.extension("verbose", VERBOSE)]))
    model_server.script("fake-1", "Short.")
    with mailbox(crew) as teams:
        teams.send(teams.join("crew", "lead"), "coder", kind="request", subject="Go on", body="Go on.")
        (result,) = results(teams)
    assert result.report is not None
    assert result.report.outcome == "failed"


def forged(pi: RpcPi, *entries: dict[str, Any]) -> str:
    """End the session and append entries to its file; the file."""
    file: str = pi.state()["sessionFile"]
    assert pi.close() == 0
    with open(file) as stream:
        parent = [json.loads(line)["id"] for line in stream][-1]
    with open(file, "a") as stream:
        for number, entry in enumerate(entries):
            frame = {"id": f"{number:08x}", "parentId": parent, "timestamp": "2026-01-01T00:00:00.000Z"}
            parent = frame["id"]
            stream.write(json.dumps(entry | frame) + "\n")
    return file


def restored(start_rpc: StartRpc, model_server: ModelServer, membership: dict[str, Any]) -> RpcPi:
    """A member's session that is opened again, with that as what it remembers of its membership."""
    pi = joined(start_rpc())
    model_server.script("fake-1", "hello")
    pi.ask("hi")
    entry = {"type": "custom", "customType": "pi-team-membership", "data": membership}
    return start_rpc("--session", forged(pi, entry))


def test_a_membership_that_makes_no_sense_is_told_once(
    crew: PiHome, start_rpc: StartRpc, model_server: ModelServer
) -> None:
    """A session file of another version, or of somebody else's making."""
    pi = restored(start_rpc, model_server, {"version": "x", "team": 7})
    told(pi, "cannot be read")
    pi.ask("/team list")
    assert notices(pi, "error") == []
    assert connected(crew) == {"coder": False}


def test_a_membership_that_cannot_even_be_passed_on_is_told_once(
    crew: PiHome, start_rpc: StartRpc, model_server: ModelServer
) -> None:
    """It killed each Python side that was to restore it, until none was started any more."""
    deep: dict[str, Any] = {}
    for _ in range(70):
        deep = {"a": deep}
    pi = restored(start_rpc, model_server, deep)
    told(pi, "too deeply nested")
    helper = helpers(pi)
    joined(pi)
    assert helpers(pi) == helper
    assert len(notices(pi, "error")) == 1
    assert notices(pi, "warning") == []
    assert connected(crew) == {"coder": True}


HOSTILE: Final = "\x1b]0;taken\x07\x1b[2Jcleared \u202edesrever \x9b31mred"


@pytest.mark.usefixtures("installed")
def test_what_a_session_file_shows_is_not_trusted(
    start_rpc: StartRpc, start_terminal: StartTerminal, model_server: ModelServer
) -> None:
    """A session file that somebody shared: fields of any type, text that moves the cursor. Pi shows it."""
    pi = start_rpc()
    model_server.script("fake-1", "hello")
    pi.ask("hi")
    strange: list[Any] = [None, 7, "text", [], {"lines": 7, "title": {}}, {"from": "a", "files": [1, None]}]
    entry = {"type": "custom", "customType": "pi-team"}
    message = {"type": "custom_message", "customType": "pi-team-message", "display": True, "content": "plain"}
    hostile = {"kind": HOSTILE, "title": HOSTILE, "lines": [HOSTILE], "body": f"{HOSTILE} end of the entry"}
    sent = {"from": HOSTILE, "kind": "request", "subject": HOSTILE, "body": f"{HOSTILE} end of the message"}
    file = forged(
        pi,
        *({**entry, "data": data} for data in strange),
        *({**message, "details": details} for details in strange),
        {**entry, "data": hostile},
        {**message, "details": sent},
    )
    terminal = start_terminal("--session", file)
    screen = terminal.until("end of the message")
    assert "end of the entry" in screen
    assert screen.count("cleared desrever") >= 4
    assert "\u202e" not in screen
    assert terminal.quit() == 0
