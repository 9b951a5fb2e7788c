"""What is wrong with the extension in Pi, and the command that mends it.

Nothing is wrong where it was never installed. As everywhere in the doctor, looking changes nothing.
"""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING, Any, Final

from pi_team.doctor import Finding
from pi_team.errors import PiConflict, PiEnvironment, PiSettings, PiTeamError
from pi_team.hosts.pi.installation import Installation, is_ours
from pi_team.hosts.pi.rivals import rival

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pi_team.hosts.pi.settings import Settings

_INSTALL: Final = "pi-team pi install"
_ASKING: Final = 20.0
_VERSION: Final = "from pi_team._version import __version__; print(__version__)"


def examine(installation: Installation) -> list[Finding]:
    """All that is wrong with the extension in Pi."""
    try:
        record, settings = installation.record(), installation.settings()
    except PiTeamError as error:
        # Whether ours is in them cannot be known; Pi goes without settings meanwhile.
        return [Finding(error.code, "", installation.settings_path, error.message, "")]
    listed = [path for _, path in settings.listed() if is_ours(path)]
    if record is None and not listed:
        return []
    return [
        *_interpreter(installation, record),
        *_extension(installation, record or {}, settings, listed),
        *_rival(installation, settings),
    ]


def _interpreter(installation: Installation, record: dict[str, Any] | None) -> Iterator[Finding]:
    path = installation.record_path
    if not record:
        what = "is missing" if record is None else "cannot be read"
        message = f"{path} {what}, so that the extension has no Python to run"
        yield Finding(PiEnvironment.code, "", path, message, _INSTALL)
        return
    python, version = record.get("python"), record.get("version")
    if not isinstance(python, str) or not os.access(python, os.X_OK):
        yield Finding(
            PiEnvironment.code, "", path, f"the Python of the extension is gone: {python}", _INSTALL
        )
        return
    found = _version_of(python)
    if found != version:
        what = f"has pi-team {found}" if found else "does not run pi-team"
        message = f"the Python of the extension, {python}, {what}; {version} was installed"
        yield Finding(PiEnvironment.code, "", path, message, _INSTALL)


def _version_of(python: str) -> str | None:
    """The version of pi-team that an interpreter has; None where it has none or does not run."""
    try:
        ended = subprocess.run(  # noqa: S603 - the interpreter that Pi would run too
            [python, "-P", "-c", _VERSION],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_ASKING,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return ended.stdout.decode("utf-8", "replace").strip()


def _extension(
    installation: Installation, record: dict[str, Any], settings: Settings, listed: list[str]
) -> Iterator[Finding]:
    path = installation.settings_path
    extension = record.get("extension")
    if isinstance(extension, str) and extension not in installation.loaded(settings):
        message = f"{path} does not name the extension that was installed, {extension}"
        yield Finding(PiSettings.code, "", path, message, _INSTALL)
    for named in listed:
        if not os.path.isfile(os.path.join(named, "pi-team.ts")):
            message = f"{path} names an extension that is gone: {named}"
            yield Finding(PiSettings.code, "", path, message, _INSTALL)
        elif (switch := settings.switch_off(named)) is not None:
            # Somebody wanted it so, perhaps.
            message = f"{path} switches the extension off: {switch}; `pi config` switches it on again"
            yield Finding(PiSettings.code, "", path, message, "")


def _rival(installation: Installation, settings: Settings) -> Iterator[Finding]:
    if (other := rival(settings)) is not None:
        message = (
            f"the TypeScript pi-team is in Pi too ({other}), and the extension steps back: keep one. "
            f"`pi-team pi uninstall` removes this one, `pi remove SOURCE` a package of Pi's"
        )
        yield Finding(PiConflict.code, "", installation.settings_path, message, "")
