"""The harness on the real Pi, without any extension of ours: what it shows is what other tests build on."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

import pytest

from pi_host.model_server import Call, Reply
from pi_host.process import still_there
from pi_host.rpc import Refused
from pi_host.typescript import check

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import psutil

    from pi_host.home import PiHome
    from pi_host.installation import Installation
    from pi_host.model_server import ModelServer
    from pi_host.rpc import RpcPi, StartRpc
    from pi_host.terminal import StartTerminal, TerminalPi

ADDING: Final = """
import { spawn } from "node:child_process";
import { type ExtensionAPI, VERSION } from "@earendil-works/pi-coding-agent";
import { Type } from "typebox";

export default function (pi: ExtensionAPI): void {
  pi.registerTool({
    name: "add",
    label: "Add",
    description: "Adds two numbers",
    parameters: Type.Object({ a: Type.Number(), b: Type.Number() }),
    execute: async (_id, { a, b }) => ({ content: [{ type: "text", text: `sum ${a + b}` }], details: {} }),
  });
  pi.registerCommand("child", {
    description: "Starts a process that ends with its input",
    handler: async (args, ctx) => {
      const sure = await ctx.ui.confirm("Start it?", args);
      if (sure) spawn("cat", { stdio: ["pipe", "ignore", "ignore"] });
      ctx.ui.notify(sure ? "started" : "left alone", "warning");
    },
  });
  pi.on("session_start", (_event, ctx) => {
    ctx.ui.setStatus("version", VERSION);
    ctx.ui.setWidget("test", ["one", "two"]);
  });
}
"""
"""An extension with a tool, a command that asks, a widget and a status."""


@pytest.fixture
def adding(pi_home: PiHome) -> str:
    return pi_home.extension("adding", ADDING)


def test_the_pi_that_runs_is_the_one_that_was_asked_for(
    start_rpc: StartRpc, adding: str, pi_installation: Installation
) -> None:
    """Another Pi than the installed one answers, or `npm` installed another version than the lock's."""
    started = time.monotonic()
    pi = start_rpc(extensions=[adding])
    pi.state()
    print(f"Pi {pi_installation.version} answered after {time.monotonic() - started:.2f} s")
    pi.eventually(lambda: pi.statuses == {"version": pi_installation.version})
    pi.eventually(lambda: pi.widgets == {"test": ["one", "two"]})
    assert pi.close() == 0


def test_prompts_reach_the_model_of_each_agent_and_its_answers_come_back(
    start_rpc: StartRpc, model_server: ModelServer
) -> None:
    """Two agents' requests were mixed up, or a context was lost between two turns."""
    first, second = start_rpc(model="fake-1"), start_rpc(model="fake-2")
    model_server.script("fake-1", "one", "three")
    model_server.script("fake-2", "two")
    began = time.monotonic()
    assert [first.ask("a"), second.ask("b"), first.ask("c")] == ["one", "two", "three"]
    last = model_server.asked("fake-1", 2)
    assert last.texts("user", "assistant") == ["a", "one", "c"]
    assert "coding" in last.system
    assert began < model_server.asked("fake-1").at < last.at < time.monotonic()
    assert last.tools == {"read", "bash", "edit", "write"}


def test_an_extension_asks_and_its_tool_runs(
    start_rpc: StartRpc, model_server: ModelServer, adding: str
) -> None:
    """A dialog's answer, a tool call or its result got lost on the way."""
    pi = start_rpc(extensions=[adding])
    refused = pi.send("prompt", message="/child now")
    question = pi.dialog("confirm")
    assert (question["title"], question["message"]) == ("Start it?", "now")
    pi.answer(question, confirmed=False)
    assert pi.response(refused) == {"disposition": "handled"}
    assert pi.notifications == [("warning", "left alone")]

    model_server.script("fake-1", Reply("I add.", Call("add", {"a": 2, "b": 3})), "It is 5.")
    assert pi.ask("2 + 3?") == "It is 5."
    assert "add" in model_server.asked("fake-1").tools
    assert model_server.asked("fake-1", 2).texts("tool") == ["sum 5"]
    with pytest.raises(Refused, match="Model not found"):
        pi.command("set_model", provider="fake", modelId="none")


def test_a_reply_stops_where_the_test_says_and_can_be_given_up(
    start_rpc: StartRpc, model_server: ModelServer
) -> None:
    """A test could not tell a turn that streams from one that has ended."""
    pi = start_rpc()
    hold = model_server.held("fake-1", "half a ")
    pi.command("prompt", message="go")
    hold.wait_reached()
    pi.until(lambda record: "half a" in str(record))
    assert pi.state()["isStreaming"]
    assert model_server.asked("fake-1").over is None
    pi.command("abort")
    assert pi.until("agent_settled")["aborted"]
    assert model_server.ended(model_server.asked("fake-1")).aborted

    hold = model_server.hold()
    model_server.script("fake-1", Reply("whole", hold, " text"))
    pi.command("prompt", message="again")
    hold.release()
    assert not pi.until("agent_settled")["aborted"]
    assert pi.command("get_last_assistant_text")["text"] == "whole text"
    assert not model_server.ended(model_server.asked("fake-1", 2)).aborted


def test_an_endpoint_is_down_and_comes_back(start_rpc: StartRpc, model_server: ModelServer) -> None:
    """A refused connection or an error looked like an answer, or the port was lost meanwhile."""
    pi = start_rpc()
    model_server.down()
    pi.ask("nobody there?")
    failed = [record["message"] for record in pi.records if record["type"] == "message_end"][-1]
    assert failed["stopReason"] == "error"
    assert model_server.requests == []
    model_server.up()
    model_server.script("fake-1", Reply("no such thing", status=400), "back")
    pi.ask("and now?")
    failed = [record["message"] for record in pi.records if record["type"] == "message_end"][-1]
    assert "no such thing" in failed["errorMessage"]
    assert pi.ask("now?") == "back"


def test_a_request_without_a_scripted_reply_is_reported(
    start_rpc: StartRpc, model_server: ModelServer
) -> None:
    """A test would pass though the model was asked something that nobody expected."""
    start_rpc().ask("surprise")
    with pytest.raises(AssertionError, match="no reply is scripted for fake-1 to 'surprise'"):
        model_server.check()
    model_server.forget_errors()


def test_the_terminal_shows_an_answer_and_escape_ends_a_turn(
    start_terminal: StartTerminal, model_server: ModelServer, adding: str
) -> None:
    """Keys did not arrive, the screen was read in the middle of a frame, a resize went unnoticed."""
    started = time.monotonic()
    pi = start_terminal(extensions=[adding])
    shown = pi.until("two")
    print(f"the editor was there after {time.monotonic() - started:.2f} s:\n{shown}")
    assert "─" * 100 in shown  # the editor's border, as wide as the terminal
    model_server.script("fake-1", "A screenful of 漢字.")
    pi.submit("what is shown")
    pi.until("A screenful of 漢字.")

    hold = model_server.held("fake-1", "half of ")
    pi.submit("more of it")
    hold.wait_reached()
    pi.until("half of")
    pi.press("escape")
    pi.until("aborted")
    assert model_server.ended(model_server.asked("fake-1", 2)).aborted

    pi.resize(60, 30)
    narrow = pi.until(lambda screen: "─" * 60 in screen and "─" * 61 not in screen)
    assert len(narrow.splitlines()) <= 30
    pi.type("/chi")
    pi.until("Starts a process")  # the completions of commands
    pi.press("tab")
    pi.until(lambda screen: "/child" in screen and "Starts a process" not in screen)
    pi.press("ctrl+c")
    pi.until(lambda screen: "/child" not in screen)
    assert pi.quit() == 0


def _child_of_rpc(pi: RpcPi) -> list[psutil.Process]:
    asked = pi.send("prompt", message="/child now")
    pi.answer(pi.dialog("confirm"), confirmed=True)
    pi.response(asked)
    return pi.process.family()


def _child_of_terminal(pi: TerminalPi) -> list[psutil.Process]:
    pi.until("two")
    pi.submit("/child now")
    pi.until("Start it?")
    pi.press("enter")
    pi.until("started")
    return pi.process.family()


def _assert_ended(pi: RpcPi | TerminalPi, children: Sequence[psutil.Process]) -> None:
    assert [child.name() for child in children] == ["cat"]
    assert pi.process.popen.poll() is None
    pi.kill()
    assert still_there(children) == []


def test_nothing_is_left_of_a_pi_that_was_killed(
    start_rpc: StartRpc, start_terminal: StartTerminal, adding: str
) -> None:
    """A process that Pi had started lives on after a SIGKILL, which takes down Pi alone."""
    rpc, terminal = start_rpc(extensions=[adding]), start_terminal(extensions=[adding])
    _assert_ended(rpc, _child_of_rpc(rpc))
    _assert_ended(terminal, _child_of_terminal(terminal))


def test_a_closed_window_and_a_signal_end_pi(start_rpc: StartRpc, start_terminal: StartTerminal) -> None:
    """The pseudo-terminal was not the controlling one: closing it told nobody."""
    rpc, terminal = start_rpc(), start_terminal()
    rpc.state()
    assert rpc.interrupt() == 143
    terminal.until("fake-1")
    assert terminal.hang_up() in {0, 129}


def test_the_compiler_knows_pi(pi_installation: Installation, tmp_path: Path) -> None:
    """A check that finds nothing because it looks at nothing."""
    directory = tmp_path / "sources"
    directory.mkdir()
    (directory / "index.ts").write_text(ADDING, "utf-8")
    (tmp_path / "good").mkdir()
    assert check(pi_installation, str(directory), tmp_path / "good") == []
    (directory / "index.ts").write_text(ADDING.replace("a + b", "a + c"), "utf-8")
    (tmp_path / "bad").mkdir()
    found = check(pi_installation, str(directory), tmp_path / "bad")
    assert any("Cannot find name 'c'" in line for line in found), found
