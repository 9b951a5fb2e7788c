"""What peers write, however wide or hostile, on terminals of any size: a line too wide would end Pi."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from pi_host.model_server import Call, Reply
from pi_team_host.terminals import assert_fits, in_order, seat_member, shows

if TYPE_CHECKING:
    from collections.abc import Callable

    from pi_host.home import PiHome
    from pi_host.model_server import ModelServer
    from pi_host.terminal import StartTerminal, TerminalPi
    from pi_team_host.team import Team

WIDE: Final = "漢字と絵文字🙂e\u0301" * 12
"""Characters of two cells and of none, and no place to break a line."""
JOINED: Final = "👩\u200d💻🇩🇪" * 60
"""One character each for a modern terminal, and not for the emulated one."""
CODE: Final = "if\tx:\n\t\treturn " + "x" * 150
HOSTILE: Final = (
    "before \x1b[2J\x1b[H\x1b]0;owned\x07\x1b]8;;http://example.invalid\x07link\x1b]8;;\x07"
    "\x1bP+q544e\x1b\\\x9b31m\x1b[?1049l\x1b[?25l\x1b[8m\u202egnp.exe\u2066\x07\x08\x08\r overwritten \x7f"
    " after"
)
"""Clears the screen, names the window, links, asks, leaves the alternate screen, hides, turns, goes back."""
LOOKS: Final = {
    "members": "1 teammate of",
    "status": "Requests without a result",
    "inbox": "The last 5 messages",
    "help": "show these commands",
}
SIZES: Final = ((80, 24), (40, 16), (17, 12), (100, 40))


def look_at_every_size(pi: TerminalPi) -> None:
    """Resize the terminal; every time the screen is whole and Pi is there."""
    for columns, lines in SIZES:
        pi.resize(columns, lines)
        pi.until(is_wide(pi, columns))
        assert_fits(pi.lines(), columns)
        assert pi.process.popen.poll() is None


def is_wide(pi: TerminalPi, columns: int) -> Callable[[str], bool]:
    """Whether the editor is as wide as that."""
    return lambda _: [len(line) for line in pi.lines() if line.startswith("──")][-1:] == [columns]


@pytest.mark.parametrize("terminal", [(80, "regular"), (40, "regular"), (40, "fullscreen")])
def test_wide_text_fits_on_terminals_of_every_size(
    terminal: tuple[int, str],
    start_terminal: StartTerminal,
    crew: Team,
    model_server: ModelServer,
    pi_home: PiHome,
) -> None:
    """A message, a note, a list or the line above the editor was wider than the terminal.

    Full screen, Pi cuts such a line; in the regular mode it ends.
    """
    columns, mode = terminal
    pi_home.write_settings(tuiMode=mode)
    alias = "c" * 48
    coder = seat_member(start_terminal, "fake-1", "coder", columns=columns, lines=24)
    coder.submit(f"/team rename-member coder {alias}")
    crew.until(lambda view: view.members[0].member.alias == alias)
    boss = crew.join("boss")
    boss.send(alias, f"A note: {WIDE}\n{CODE}", kind="note", subject=WIDE[:160])
    coder.until("漢字")
    written = Call("write", {"path": f"{'深' * 40}/{'夜' * 60}.py", "content": "x"})
    looks = Reply(Call("team_status", {}), Call("team_members", {}), written)
    model_server.script("fake-1", looks, f"{WIDE} done")
    result = crew.result_of(boss.send(alias, f"{WIDE}\n{CODE}", subject=WIDE[:160]))
    assert result.body.endswith("done")
    shows(coder, "receiving")

    asked = Call("team_send", {"to": "boss", "kind": "request", "subject": WIDE[:100], "body": CODE})
    model_server.script("fake-1", Reply(asked), "Sent.", "Seen.")
    coder.submit("ask")
    boss.answer(crew.has(kind="request", recipient="boss"), f"{WIDE}\n{CODE}", f"/{'夜' * 200}", "/b")
    coder.until("Seen.")
    for line, told in LOOKS.items():
        coder.submit(f"/team {line}")
        coder.until(told)
        look_at_every_size(coder)
    coder.press("ctrl+o")
    coder.until("expanded")
    look_at_every_size(coder)
    boss.send(alias, f"{JOINED}\nthe end", kind="note", subject="Joined")
    coder.until("the end")
    assert coder.quit() == 0


def test_terminal_sequences_of_peers_reach_no_terminal(
    start_terminal: StartTerminal, crew: Team, model_server: ModelServer
) -> None:
    """A peer cleared the screen, hid text, named the window, or made it look as if the user had written."""
    coder = seat_member(start_terminal, "fake-1", "coder")
    boss = crew.join("boss")
    boss.send("coder", HOSTILE, kind="note", subject=f"note {HOSTILE}"[:160])
    in_order(coder.until("after"), "note  boss → coder", "before", "gnp.exe", "overwritten  after")
    model_server.script("fake-1", "Done.", "Verified.")
    crew.result_of(boss.send("coder", f"request {HOSTILE}", subject=f"work {HOSTILE}"[:160]))
    shows(coder, "crew · coder · receiving")
    coder.submit("/team send boss Answer me")
    boss.answer(crew.has(kind="request", recipient="boss"), f"result {HOSTILE}", f"/{HOSTILE}")
    screen = coder.until("Verified.")
    in_order(
        screen,
        "request  boss → coder",
        "work before link",
        "result completed",
        "result before link",
        "1 file:",
    )
    shows(coder, "crew · coder · receiving")
    for line in ("inbox", "status", "members"):
        coder.submit(f"/team {line}")
    screen = coder.until("Team crew: 1 teammate of coder")
    assert_fits(coder.lines(), 100)
    for hidden in ("owned", "example.invalid", "31m", "1049"):
        assert hidden not in screen
    assert "owned" not in coder._screen.title
    assert "owned" not in model_server.asked("fake-1", 2).context
    assert coder.quit() == 0
