"""Rewrite the screens in the documents: the real Pi in emulated terminals, with a model that is scripted.

    python docs/capture.py           play the story and rewrite the screens
    python docs/capture.py --check   change nothing; exit status 1 where a screen looks different by now

It needs the development extra, and fetches Pi once. A screen stands between `<!-- screen: NAME -->` and
`<!-- end of NAME -->`. It begins below Pi's own greeting, ends with the editor, and has no two blank lines
in a row; the temporary home directory is called `~`. Ids and times of day are compared by their form.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

HERE: Final = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent), str(HERE.parent / "tests" / "support")]

from pi_host.home import PiHome
from pi_host.installation import install
from pi_host.model_server import Call, ModelServer, Reply
from pi_host.terminal import TerminalPi

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DOCUMENTS: Final = ("README.md", "docs/pi.md")
COLUMNS: Final = 80
REQUEST: Final = "Make parse_week in dates.py accept ISO weeks. tests/ is mine."
CODE: Final = "def parse_week(text): ...\n"
RESULT: Final = (
    "parse_week in dates.py accepts ISO weeks: 2026-W05.\n\n"
    "- Checked with the examples of the standard, all 12 right.\n"
    "- Week 53 of a year that has none is refused with ValueError.\n"
    "- Not done: the documentation.\n"
    "- Not touched: tests/."
)
SPINNER: Final = re.compile("[\u2801-\u28ff]")
VARYING: Final = re.compile(r"\b[0-9]{2}:[0-9]{2}:[0-9]{2}\b|\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
SHORT_ID: Final = re.compile(r"(?<=  )[0-9a-f]{8}(?=  )")
_PART: Final = re.compile(r"<!-- screen: ([a-z]+) -->\n```text\n(.*?)```\n<!-- end of \1 -->", re.DOTALL)
AGE: Final = re.compile(r"\b[0-9]+ s\b")


class Stage:
    """Two people in front of two terminals."""

    def __init__(self, root: Path, server: ModelServer) -> None:
        self.server = server
        self._home = PiHome(root, install(), server)
        self._home.user = root
        self._home.work = root / "project"
        self._home.work.mkdir()
        self._terminals: list[TerminalPi] = []

    def install(self) -> None:
        """Do what a user does first."""
        pi_team = os.path.join(os.path.dirname(sys.executable), "pi-team")
        environment = self._home.env({})
        subprocess.run([pi_team, "pi", "install"], env=environment, check=True, capture_output=True)  # noqa: S603 - our own command

    def sit_down(self, model: str) -> TerminalPi:
        """Open a terminal and start Pi in it."""
        self._terminals.append(TerminalPi(self._home, model=model, columns=COLUMNS))
        self._terminals[-1].until("[Extensions]")  # the editor is there before they are loaded
        return self._terminals[-1]

    def look(self, pi: TerminalPi, wanted: str | Callable[[str], object], first: str) -> str:
        """The screen that shows what is wanted, from the line with `first` on."""
        screen = pi.until(wanted).replace(str(self._home.user), "~")
        lines = screen.splitlines()
        begin = next(number for number, line in enumerate(lines) if first in line)
        end = max(number for number, line in enumerate(lines) if line.startswith("──"))
        offered = pi.menu()
        kept = "\n".join(lines[begin : end + 1 + len(offered)])
        return re.sub(r"\n{3,}", "\n\n", kept)

    def end(self) -> None:
        """End both processes."""
        for pi in self._terminals:
            pi.sweep()


def story(stage: Stage) -> Iterator[tuple[str, str]]:
    """The screens of the story, in its order, each with its name."""
    stage.install()
    lead, coder = stage.sit_down("fake-1"), stage.sit_down("fake-2")
    lead.type("/team ")
    yield "menu", stage.look(lead, lambda _: "(1/" in "".join(lead.menu()), "──")
    lead.press(*["backspace"] * len("/team "))
    lead.submit("/team create crew")
    lead.until("/team join crew ALIAS")
    lead.submit("/team join crew lead")
    lead.until("● crew · lead")
    coder.submit("/team join crew coder")
    coder.until("● crew · coder")
    yield from _work(stage, lead, coder)
    yield from _takeover(stage, lead, coder)
    yield from _looks(stage, lead)


def _work(stage: Stage, lead: TerminalPi, coder: TerminalPi) -> Iterator[tuple[str, str]]:
    hold = stage.server.hold()
    written = Call("write", {"path": "dates.py", "content": CODE})
    stage.server.script("fake-2", Reply("I write it and then check it.", written), Reply(hold, RESULT))
    lead.submit(f"/team send coder {REQUEST}")
    hold.wait_reached()
    yield "asked", stage.look(lead, "1 result awaited", "Joined crew")
    yield (
        "working",
        stage.look(coder, lambda shown: "write dates.py" in shown and "working" in shown, "Joined"),
    )
    stage.server.script(
        "fake-1", "I ran my tests against dates.py: they pass. The documentation is still to do."
    )
    hold.release()
    ready = stage.look(lead, lambda shown: "still to do" in shown and "receiving" in shown, "request queued")
    yield "result", ready
    lead.press("ctrl+o")
    yield "expanded", stage.look(lead, "Not touched", "result completed")
    lead.press("ctrl+o")
    lead.until("Tool output: collapsed")


def _takeover(stage: Stage, lead: TerminalPi, coder: TerminalPi) -> Iterator[tuple[str, str]]:
    hold = stage.server.held("fake-2", "I begin with the ")
    lead.submit("/team send coder Write the documentation of parse_week.")
    hold.wait_reached()
    coder.until("working on a request")
    stage.server.script("fake-1", "coder was interrupted. Nothing is sent again; tell me how to go on.")
    stage.server.script("fake-2", "Then I leave it to you.")
    coder.submit("Stop, I write that myself.")
    coder.until("You took over")
    hold.release()
    yield "takeover", stage.look(coder, "leave it to you", "Write the documentation")
    lead.until("tell me how to go on")


def _looks(stage: Stage, lead: TerminalPi) -> Iterator[tuple[str, str]]:
    lead.submit("/team note coder I documented it. Have a look.")
    lead.until("note queued")
    lead.until("receiving")
    for line, told in (("members", "1 teammate of"), ("status", "without a result"), ("inbox", "The last")):
        lead.submit(f"/team {line}")
        lead.until(told)
    yield "looks", stage.look(lead, "The last", "note queued")


def screens() -> dict[str, str]:
    """Play the story; each screen under its name."""
    with tempfile.TemporaryDirectory(prefix="pi-team-") as root, ModelServer() as server:
        stage = Stage(Path(root).resolve(), server)
        try:
            shown = dict(story(stage))
        finally:
            stage.end()
        server.check()
    return shown


def form(text: str) -> str:
    """The text with ids and times replaced, which differ each time."""
    for pattern in (VARYING, SHORT_ID, AGE, SPINNER):
        text = pattern.sub("~", text)
    return text


def parts(document: str) -> dict[str, str]:
    """The screens that a document has, each under its name."""
    return {match[1]: match[2].rstrip("\n") for match in _PART.finditer(document)}


def refreshed(document: str, shown: dict[str, str]) -> str:
    """The document with these screens in their places; one that looks as before keeps its ids and times."""

    def part(match: re.Match[str]) -> str:
        name, before = match[1], match[2].rstrip("\n")
        now = before if form(before) == form(shown[name]) else shown[name]
        return f"<!-- screen: {name} -->\n```text\n{now}\n```\n<!-- end of {name} -->"

    return _PART.sub(part, document)


def main(arguments: list[str]) -> int:
    """Rewrite, or with `--check` compare, every screen; the exit status."""
    shown = screens()
    stale = 0
    for name in DOCUMENTS:
        path = HERE.parent / name
        before = path.read_text("utf-8")
        after = refreshed(before, shown)
        if after != before:
            stale = 1
            print(f"{name}: a screen is stale", file=sys.stderr)
            if arguments != ["--check"]:
                path.write_text(after, "utf-8")
    return stale if arguments == ["--check"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
