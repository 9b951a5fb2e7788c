"""`pi-team demo`: the main job end to end, with real processes, crashes included, every claim checked."""

from __future__ import annotations

import json
import signal
import sys
import time
from typing import TYPE_CHECKING, Final

import click

from pi_team.cli import killed_writer
from pi_team.cli.output import coloured, paint, write
from pi_team.cli.parameters import json_option
from pi_team.cli.stage import Stage
from pi_team.errors import DemoFailed

if TYPE_CHECKING:
    from subprocess import Popen

    from pi_team.cli.output import Output
    from pi_team.domain.model import Message

__all__ = ["demo"]

_TEAM: Final = "crew"
_LEAD, _CODER, _OTHER = "lead", "coder", "writer"
_INTERRUPTED: Final = 4
"""The exit status of `ask` for an interrupted result."""
_ANSWER: Final = """\
import json, sys, time
request = json.load(sys.stdin)
time.sleep(600 if request["subject"] == "slow" else 0)
print(request["body"].upper())
"""
"""What the demo's worker runs on each request: shouts it back; on a slow one it never ends by itself."""


class Narrator:
    """Says what happens, and fails where a claim does not hold."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._began = time.monotonic()

    def chapter(self, title: str) -> None:
        """Begin a part of the demo."""
        self._output.line("")
        self._output.line(title, "bold")
        self._output.json({"event": "chapter", "title": title, "seconds": self._seconds()})

    def claim(self, text: str, *, held: bool) -> None:
        """State a claim that was checked.

        Raises:
            DemoFailed: it does not hold.
        """
        self._output.json({"event": "claim", "text": text, "held": held, "seconds": self._seconds()})
        if not held:
            raise DemoFailed(f"this does not hold: {text}")
        if not self._output.as_json:
            mark = paint("ok", "green", on=coloured(sys.stdout))
            write(f"  {mark} {self._seconds():5.1f} s  {text}", sys.stdout)

    def _seconds(self) -> float:
        return round(time.monotonic() - self._began, 2)


@click.command(short_help="See it at work, crashes included, in a temporary directory.")
@json_option
@click.pass_obj
def demo(output: Output) -> None:
    """Show pi-team at work in a temporary directory, with real processes that are really killed.

    Every line marked `ok` was checked against the record and the exit status of the processes; the demo
    fails where one does not hold. It takes a few seconds and leaves nothing behind.
    """
    narrator = Narrator(output)
    with Stage() as stage:
        output.line(f"Everything happens in {stage.path} and is gone afterwards.")
        worker = _two_sessions(stage, narrator)
        _killed_worker(stage, narrator, worker)
        _killed_writer(stage, narrator)
    narrator.chapter("4. Nothing is left behind")
    narrator.claim(
        f"all {len(stage.pids)} processes have ended and the directory is gone", held=not stage.left_behind()
    )


def _two_sessions(stage: Stage, narrator: Narrator) -> Popen[str]:
    """A request and its result, between two processes."""
    narrator.chapter("1. Two sessions in two processes")
    stage.mailbox.create(_TEAM)
    worker = stage.start("pi_team", "work", _TEAM, _CODER, "--", sys.executable, "-c", _ANSWER)
    narrator.claim(
        f"process {worker.pid} runs `pi-team work {_TEAM} {_CODER} -- CMD` and is idle",
        held=stage.until(lambda: _displayed(stage, _CODER) == "idle"),
    )
    asker = stage.start("pi_team", "ask", _TEAM, _CODER, "please shout", "--as", _LEAD, "--json")
    status, printed = stage.finish(asker)
    narrator.claim(
        f"process {asker.pid} ran `pi-team ask {_TEAM} {_CODER} … --as {_LEAD}` and ended with 0",
        held=status == 0,
    )
    request, result = _only(stage, "request"), _only(stage, "result")
    narrator.claim("the record has the request, completed", held=request.state == "completed")
    narrator.claim(
        "and exactly one result for it, which says PLEASE SHOUT",
        held=(result.parent_id, result.body) == (request.id, "PLEASE SHOUT"),
    )
    narrator.claim("`ask` printed that very result", held=json.loads(printed)["id"] == result.id)
    return worker


def _killed_worker(stage: Stage, narrator: Narrator, worker: Popen[str]) -> None:
    """The claiming session dies: its request ends interrupted, once, and the emitter hears of it."""
    narrator.chapter("2. The worker is killed in the middle of its work")
    asker = stage.start(
        "pi_team", "ask", _TEAM, _CODER, "take your time", "--subject", "slow", "--as", _LEAD, "--json"
    )
    narrator.claim(
        f"`{_CODER}` claimed a second request and is working on it",
        held=stage.until(lambda: any(message.state == "processing" for message in _messages(stage))),
    )
    status = stage.kill(worker)
    narrator.claim(f"process {worker.pid} was killed (SIGKILL)", held=status == -signal.SIGKILL)
    status, printed = stage.finish(asker)
    narrator.claim("`ask` noticed by itself and ended with 4, interrupted", held=status == _INTERRUPTED)
    request = next(message for message in _messages(stage) if message.subject == "slow")
    results = [message for message in _messages(stage) if message.parent_id == request.id]
    narrator.claim(
        "the record has that request, interrupted, and exactly one result for it, interrupted",
        held=request.state == "interrupted" and _outcomes(results) == ["interrupted"],
    )
    narrator.claim("`ask` printed that very result", held=json.loads(printed)["id"] == results[0].id)
    narrator.claim(f"`{_CODER}` is shown as offline", held=_displayed(stage, _CODER) == "offline")


def _killed_writer(stage: Stage, narrator: Narrator) -> None:
    """A writer dies at the worst moment, and the next one proceeds without anybody's help."""
    narrator.chapter("3. A writer is killed between link and rename")
    writer = stage.start("pi_team.cli.killed_writer", _TEAM, _OTHER, _CODER)
    status, _printed = stage.finish(writer)
    shown, newest = stage.revisions(_TEAM)
    narrator.claim(f"process {writer.pid} died sending a note (SIGKILL)", held=status == -signal.SIGKILL)
    narrator.claim(
        f"revision {newest} is in the history and the record still shows {shown}", held=newest == shown + 1
    )
    began = time.monotonic()
    sender = stage.start("pi_team", "send", _TEAM, _CODER, "next, please", "--note", "--as", _LEAD)
    status, printed = stage.finish(sender)
    narrator.claim(
        f"the next writer proceeded: `pi-team send` ended with 0 after {time.monotonic() - began:.1f} s",
        held=status == 0,
    )
    now_shown, now_newest = stage.revisions(_TEAM)
    narrator.claim(
        f"the record shows revision {now_shown}, the newest", held=now_shown == now_newest > newest
    )
    notes = [message for message in _messages(stage) if message.kind == "note"]
    narrator.claim(
        "the killed writer's note is in the record exactly once, and the next writer's after it",
        held=[note.subject for note in notes] == [killed_writer.SUBJECT, "next, please"]
        and notes[-1].id == printed.strip(),
    )


def _messages(stage: Stage) -> tuple[Message, ...]:
    return stage.mailbox.look(_TEAM).messages


def _only(stage: Stage, kind: str) -> Message:
    found = [message for message in _messages(stage) if message.kind == kind]
    if len(found) != 1:
        raise DemoFailed(f"the record has {len(found)} messages of the kind {kind}, not one")
    return found[0]


def _outcomes(results: list[Message]) -> list[str]:
    return [result.report.outcome for result in results if result.report is not None]


def _displayed(stage: Stage, alias: str) -> str:
    """What the roster shows of a member, "absent" where it is not in it."""
    members = {entry.member.alias: entry.displayed for entry in stage.mailbox.look(_TEAM).members}
    return members.get(alias, "absent")
