"""Putting the extension into Pi's settings, and taking it out.

Two files in Pi's directory are concerned: `settings.json`, which is the user's and Pi's, and `pi-team.json`,
which is ours and says which Python the extension runs. The settings name the extension where it lies, inside
this installed package, so that an upgrade in place upgrades both sides of the bridge.

An installation is a stretch of text put into the settings; `pi-team.json` keeps where, and the hash of what
came out, so that taking it out again gives back what was there to the byte. If the settings were changed
meanwhile, the entry alone is taken out.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import stat
import sys
from typing import TYPE_CHECKING, Any, Final

import attrs

from pi_team._version import __version__
from pi_team.clocks import Clock, SystemClock
from pi_team.errors import PiConflict, PiEnvironment, PiSettings
from pi_team.hosts.pi.rivals import rival
from pi_team.hosts.pi.settings import NoSettings, Settings
from pi_team.record.filesystem import storage_error
from pi_team.record.locks import Patience
from pi_team.store import default_path

if TYPE_CHECKING:
    from collections.abc import Iterator

RECORD: Final = "pi-team.json"
SETTINGS: Final = "settings.json"
EXTENSION: Final = os.path.join(os.path.dirname(os.path.abspath(__file__)), "extension")
"""The extension of this very package."""
_WITHIN_PACKAGE: Final = os.path.join("pi_team", "hosts", "pi", "extension")
_PATTERNS: Final = frozenset("*?")
_CACHE_TAG: Final = "CACHEDIR.TAG"
_CACHE_SIGNATURE: Final = b"Signature: 8a477f597d28d172789f06886806bc55"
"""How a directory says that it is a cache, as uv's does (the Cache Directory Tagging Specification)."""
_LOCK_LIFETIME: Final = 10.0
"""Seconds after which Pi takes a lock on its settings for abandoned."""
_LOCK_PATIENCE: Final = 5.0


@attrs.frozen
class Outcome:
    """What an installation or its removal did.

    Attributes:
        settings: the path of Pi's settings.
        extension: the path of the extension.
        python: the interpreter that the extension runs.
        changed: whether anything is otherwise than it was.
    """

    settings: str
    extension: str
    python: str
    changed: bool

    def to_json(self) -> dict[str, object]:
        """The outcome as `--json` prints it."""
        return {**attrs.asdict(self), "version": __version__}


def agent_directory() -> str:
    """Pi's directory of this user: `$PI_CODING_AGENT_DIR`, or `~/.pi/agent`."""
    return os.path.dirname(default_path())


def is_ours(path: str) -> bool:
    """Whether a path is where an installed pi-team has its extension, this one or another."""
    return path == EXTENSION or path.endswith(os.sep + _WITHIN_PACKAGE)


class Installation:
    """The extension in one directory of Pi's.

    Args:
        directory: Pi's directory; the user's by default.
        clock: the clock by which the lock of the settings is judged.
    """

    def __init__(self, directory: str | None = None, *, clock: Clock | None = None) -> None:
        self.directory = agent_directory() if directory is None else directory
        self.settings_path = os.path.join(self.directory, SETTINGS)
        self.record_path = os.path.join(self.directory, RECORD)
        self._clock = clock or SystemClock()

    # --- looking

    def settings(self) -> Settings:
        """Pi's settings as they are; empty ones where there are none.

        Raises:
            PiSettings: they cannot be read or edited.
            StorageError: the system refused to read them.
        """
        return self._parsed(self._read(self.settings_path) or b"")

    def record(self) -> dict[str, Any] | None:
        """What is recorded of the installation, empty where it cannot be read; None where there is none."""
        data = self._read(self.record_path)
        if data is None:
            return None
        try:
            value = json.loads(data)
        except ValueError:
            return {}
        return value if isinstance(value, dict) else {}

    # --- changing

    def install(self) -> Outcome:
        """Put the extension of this package into the settings, in place of an earlier one.

        Raises:
            PiEnvironment: this Python environment is not there to stay, or Pi could not load from it.
            PiConflict: the TypeScript pi-team is in Pi.
            PiSettings: the settings cannot be read or edited; they are left as they are.
            Busy: somebody holds the lock of the settings.
            StorageError: the system refused.
        """
        require_durable()
        with self._locked():
            before, record = self._read(self.settings_path), self.record()
            current = self._parsed(before or b"")
            if (other := rival(current)) is not None:
                raise PiConflict(f"the TypeScript pi-team is in Pi: {other}")
            after, edit = before, (record or {}).get("edit")
            if not self._is_in(current):
                after, edit = self._put_in(self._taken_out(before, edit))
            made = {"python": sys.executable, "version": __version__, "extension": EXTENSION, "edit": edit}
            # First what the extension needs, then the extension: it is never there without its Python.
            if made != record:
                self._write(self.record_path, json.dumps(made, indent=2).encode() + b"\n")
            if after is not None and after != before:
                self._write(self.settings_path, after)
        return self._outcome(changed=made != record or after != before)

    def uninstall(self) -> Outcome:
        """Take the extension out of the settings; nothing happens where it is not in them.

        Raises:
            PiSettings, Busy, StorageError: as for :meth:`install`.
        """
        if not os.path.isdir(self.directory):
            return self._outcome(changed=False)
        with self._locked():
            before, record = self._read(self.settings_path), self.record()
            after = self._taken_out(before, (record or {}).get("edit"))
            if after != before:
                self._write(self.settings_path, after)
            if record is not None:
                self._write(self.record_path, None)
        return self._outcome(changed=after != before or record is not None)

    def _outcome(self, *, changed: bool) -> Outcome:
        return Outcome(self.settings_path, EXTENSION, sys.executable, changed)

    def _is_in(self, settings: Settings) -> bool:
        """Whether Pi loads this extension, and none of an environment of former times."""
        former = {path for _, path in settings.listed() if is_ours(path)} - {EXTENSION}
        return not former and EXTENSION in self.loaded(settings)

    def loaded(self, settings: Settings) -> set[str]:
        """The paths that Pi loads, as extensions or as packages."""
        sources = [each.get("source") if isinstance(each, dict) else each for each in settings.packages]
        packages = {settings.path(source) for source in sources if isinstance(source, str)}
        return {path for _, path in settings.listed()} | packages

    def _put_in(self, before: bytes | None) -> tuple[bytes | None, dict[str, Any] | None]:
        """The settings with the extension, and what has to be known to undo that, if there is anything."""
        settings = self._parsed(before or b"")
        if self._is_in(settings):  # as a package, which somebody has put there and only they take out
            return before, None
        insertion = settings.insertion(EXTENSION)
        after = insertion.into(settings.text).encode()
        edit = {
            "sha256": hashlib.sha256(after).hexdigest(),
            "offset": len(settings.text[: insertion.offset].encode()),
            "bytes": len(insertion.text.encode()),
            "with_key": insertion.with_key,
            "created": before is None,
        }
        return after, edit

    def _taken_out(self, data: bytes | None, edit: object) -> bytes | None:
        """The settings without any extension of ours; None where there were none before it."""
        if data is None:
            return None
        undo = edit if isinstance(edit, dict) else {}
        if hashlib.sha256(data).hexdigest() == undo.get("sha256"):
            start = int(undo["offset"])
            return None if undo["created"] else data[:start] + data[start + int(undo["bytes"]) :]
        settings = self._parsed(data)
        while ours := [entry for entry, path in settings.listed() if is_ours(path)]:
            text = settings.without(ours[0], with_key=bool(undo.get("with_key")))
            settings = self._parsed(text.encode())
        if undo.get("created") and not settings.members:
            return None
        return settings.text.encode()

    # --- files

    def _parsed(self, data: bytes) -> Settings:
        try:
            return Settings.parse(data.decode(), self.directory)
        except (NoSettings, UnicodeDecodeError) as error:
            raise PiSettings(f"{self.settings_path} cannot be read as Pi reads it: {error}") from error

    def _read(self, path: str) -> bytes | None:
        try:
            fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
            try:
                if not stat.S_ISREG(os.fstat(fd).st_mode):
                    raise PiSettings(f"{path} is no file")
                with open(fd, "rb", closefd=False) as stream:
                    return stream.read()
            finally:
                os.close(fd)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise storage_error(error, f"cannot read {path}") from error

    def _write(self, path: str, data: bytes | None) -> None:
        """Replace a file whole, or remove it for None; where its name is a link, what the link leads to."""
        target = os.path.realpath(path)
        beside = f"{target}.pi-team-new"
        try:
            if data is None:
                os.unlink(target)
                return
            fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
            with open(fd, "wb") as stream:
                with contextlib.suppress(FileNotFoundError):
                    os.fchmod(fd, stat.S_IMODE(os.stat(target).st_mode))
                stream.write(data)
                stream.flush()
                os.fsync(fd)
            os.replace(beside, target)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.unlink(beside)
            raise storage_error(error, f"cannot write {path}") from error

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock that Pi itself takes when it writes its settings: a directory beside them."""
        lock = f"{self.settings_path}.lock"
        patience = Patience(self._clock, _LOCK_PATIENCE)
        try:
            os.makedirs(self.directory, mode=0o700, exist_ok=True)
            while not self._try_lock(lock):
                patience.wait(f"whoever writes Pi's settings and holds {lock}")
        except OSError as error:
            raise storage_error(error, f"cannot lock {self.settings_path}") from error
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                os.rmdir(lock)

    def _try_lock(self, lock: str) -> bool:
        with contextlib.suppress(FileExistsError):
            os.mkdir(lock)
            return True
        with contextlib.suppress(FileNotFoundError):
            if self._clock.wall() - os.stat(lock).st_mtime > _LOCK_LIFETIME:
                os.rmdir(lock)
        return False


def require_durable() -> None:
    """Make sure that this environment will be there when Pi starts, and that Pi can load from it.

    Raises:
        PiEnvironment: it is a throw-away one, or its path is one that Pi reads as a pattern.
    """
    if (cache := _cache_around(sys.prefix)) is not None:
        raise PiEnvironment(
            f"this Python environment lies in {cache}, a cache that is emptied without notice"
        )
    if not sys.executable or not os.path.isfile(os.path.join(EXTENSION, "pi-team.ts")):
        raise PiEnvironment(f"there is no extension in {EXTENSION}, or no Python to run")
    if _PATTERNS & set(EXTENSION) or not EXTENSION.isprintable():
        raise PiEnvironment(f"Pi cannot load from {EXTENSION!r}: it reads such a path as a pattern")


def _cache_around(path: str) -> str | None:
    """The cache that a directory lies in. One that is tagged itself is none: uv tags each environment."""
    parent = os.path.dirname(os.path.realpath(path))
    while parent != os.path.dirname(parent):
        with contextlib.suppress(OSError), open(os.path.join(parent, _CACHE_TAG), "rb") as stream:
            if stream.read(len(_CACHE_SIGNATURE)) == _CACHE_SIGNATURE:
                return parent
        parent = os.path.dirname(parent)
    return None
