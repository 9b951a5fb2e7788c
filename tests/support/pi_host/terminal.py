"""Pi in its terminal interface: a pseudo-terminal, an emulated screen, and keys."""

from __future__ import annotations

import fcntl
import itertools
import os
import pty
import re
import select
import struct
import sys
import termios
import threading
import time
from typing import TYPE_CHECKING, Any, Final, Protocol

import pyte

from pi_host.process import PATIENCE, PiProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import psutil

    from pi_host.home import PiHome

KEYS: Final = {
    "enter": "\r",
    "escape": "\x1b",
    "tab": "\t",
    "backspace": "\x7f",
    "up": "\x1b[A",
    "down": "\x1b[B",
    "right": "\x1b[C",
    "left": "\x1b[D",
    "page up": "\x1b[5~",
    "page down": "\x1b[6~",
    "alt+enter": "\x1b\r",
    "newline": "\n",
    **{f"ctrl+{letter}": chr(ord(letter) - ord("a") + 1) for letter in "abcdefghklnopqrstuvwxyz"},
}
"""What a terminal sends for a key."""
_AFTER_ESCAPE: Final = 0.3
"""Seconds after Escape in which another key would be taken for one pressed together with Alt."""
_CLAIM: Final = """import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])"""
"""Becomes the program that follows, with the terminal as its controlling one: else a new size or a closed
window would signal nobody."""
_SYNCHRONIZED: Final = 2026 << 5
"""The mode in which a frame is being drawn, as the emulator numbers private modes."""
_UNKNOWN: Final = re.compile(rb"\x1b\[[<=>][0-9;:]*[ -/]*[@-~]|\x1b[P_^X][^\x1b]*\x1b\\")
"""What the emulator would show as text: private sequences with other marks than `?`, and strings."""
_OFFERED: Final = re.compile(r"→ |  \S")
_UNFINISHED: Final = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*|[P_^X\]][^\x07\x1b]*\x1b?)?\Z")


class _Screen(pyte.Screen):
    """A screen that answers what a program asks its terminal."""

    def __init__(self, columns: int, lines: int, answer: Callable[[str], None]) -> None:
        super().__init__(columns, lines)
        self._answer = answer

    def write_process_input(self, data: str) -> None:
        self._answer(data)


class StartTerminal(Protocol):
    """Starts Pi in a terminal; the options are those of `TerminalPi`."""

    def __call__(self, *words: str, **options: Any) -> TerminalPi: ...


class TerminalPi:
    """One Pi process in a terminal of its own."""

    def __init__(
        self,
        home: PiHome,
        *words: str,
        extensions: Sequence[str] = (),
        model: str | None = None,
        env: Mapping[str, str] | None = None,
        columns: int = 100,
        lines: int = 40,
    ) -> None:
        self._fd, inner = pty.openpty()
        self._hung_up, self._hanging_up = os.pipe()
        self._changed = threading.Condition()
        self._over = False
        self._fed = False
        self._rest = b""
        self._not_before = 0.0
        self._screen = _Screen(columns, lines, self._write)
        self._stream = pyte.ByteStream(self._screen)
        self._set_size(columns, lines)
        self.process = PiProcess(
            [sys.executable, "-ISc", _CLAIM, *home.command(words, extensions=extensions, model=model)],
            cwd=home.work,
            env=home.env(env or {}),
            stdin=inner,
            stdout=inner,
            stderr=inner,
        )
        os.close(inner)
        self._reader = threading.Thread(target=self._read)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self.process.pid

    # --- the keyboard

    def type(self, text: str) -> None:
        """Type text, as fast as a person cannot."""
        self._write(text)

    def press(self, *keys: str) -> None:
        """Press keys of `KEYS`, one after the other."""
        for key in keys:
            self._write(KEYS[key])
            if key == "escape":
                self._not_before = time.monotonic() + _AFTER_ESCAPE

    def submit(self, text: str) -> None:
        """Type a line and press Enter once the editor shows its end, and no menu that would take the key.

        That of the commands' names submits what it completes; that of a command's arguments does not.
        """
        self.type(text)
        end = "".join(text.split())[-20:]  # which the editor may have wrapped
        taken = " " in text
        self.until(lambda _: "".join(self.editor().split()).endswith(end) and not (taken and self.menu()))
        self.press("enter")

    # --- the screen

    def lines(self) -> list[str]:
        """The lines of the screen without colours and without the blanks at their ends."""
        with self._changed:
            return [line.rstrip() for line in self._screen.display]

    def text(self) -> str:
        """The screen as text: what a document can show."""
        return "\n".join(self.lines()).strip("\n")

    def editor(self) -> str:
        """The text between the editor's borders; "" where no editor is shown."""
        lines = self.lines()
        borders = [number for number, line in enumerate(lines) if line.startswith("──")][-2:]
        return "\n".join(lines[borders[0] + 1 : borders[1]]).strip() if len(borders) == 2 else ""

    def menu(self) -> list[str]:
        """The lines of the completion menu below the editor; the chosen one begins with an arrow."""
        lines = self.lines()
        borders = [number for number, line in enumerate(lines) if line.startswith("──")]
        return [*itertools.takewhile(_OFFERED.match, lines[borders[-1] + 1 :])] if borders else []

    def until(self, wanted: str | Callable[[str], object], patience: float = PATIENCE) -> str:
        """The text of the first whole frame that contains it, or for which it is true."""
        fits = wanted if callable(wanted) else lambda screen: wanted in screen

        def found() -> bool:
            return _SYNCHRONIZED not in self._screen.mode and bool(fits(self.text()))

        with self._changed:
            self._changed.wait_for(lambda: self._over or found(), patience)
            screen = self.text()
            assert fits(screen), f"never shown: {wanted}; ended: {self._over}; the screen:\n{screen}"
            return screen

    def resize(self, columns: int, lines: int) -> None:
        """Make the terminal another size, as if somebody had pulled at its window, and wait for the answer.

        What is on the screen is cut by the emulator at once: without the wait it would look like a frame.
        """
        with self._changed:
            if (self._screen.columns, self._screen.lines) == (columns, lines):
                return
            self._screen.resize(lines, columns)
            self._set_size(columns, lines)
            self._fed = False
            answered = self._changed.wait_for(lambda: self._over or self._fed, PATIENCE)
        assert answered, "Pi draws nothing in its new window"

    # --- ending

    def quit(self) -> int:
        """Leave as a person does, with an empty editor; the return code."""
        self.press("ctrl+d")
        return self.process.ended()

    def hang_up(self) -> int:
        """Close the terminal, as closing its window does; the return code."""
        self._close()
        return self.process.ended()

    def kill(self) -> list[psutil.Process]:
        """Kill Pi and nothing else; what it had started."""
        return self.process.kill()

    def sweep(self) -> None:
        """End whatever is left, at the end of a test."""
        self.process.sweep()
        self._close()

    def _close(self) -> None:
        """Close the terminal once nobody reads from it: a read under way would keep it open."""
        if self._fd >= 0:
            os.close(self._hanging_up)
            self._reader.join()
            os.close(self._hung_up)
            os.close(self._fd)
            self._fd = -1

    def _set_size(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def _write(self, text: str) -> None:
        time.sleep(max(self._not_before - time.monotonic(), 0))
        data = text.encode()
        while data:
            data = data[os.write(self._fd, data) :]

    def _read(self) -> None:
        while True:
            chunk = self._chunk()
            with self._changed:
                if chunk:
                    self._feed(chunk)
                    self._fed = True
                else:
                    self._over = True
                self._changed.notify_all()
            if not chunk:
                return

    def _chunk(self) -> bytes:
        """The next output; nothing at its end."""
        ready, _, _ = select.select([self._fd, self._hung_up], [], [])
        try:
            return os.read(self._fd, 65_536) if self._fd in ready else b""
        except OSError:  # EIO: nobody has the other end open
            return b""

    def _feed(self, chunk: bytes) -> None:
        data = self._rest + chunk
        unfinished = _UNFINISHED.search(data)
        end = unfinished.start() if unfinished else len(data)
        self._rest = data[end:]
        self._stream.feed(_UNKNOWN.sub(b"", data[:end]))
