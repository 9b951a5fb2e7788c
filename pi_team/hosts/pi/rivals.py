"""Whether the TypeScript pi-team is in Pi too: it has the same command and the same tools."""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pi_team.hosts.pi.settings import Settings

_NAME: Final = "pi-team"
_REMOTE: Final = re.compile(
    r"(?:npm:(?:@[^/@]+/)?|(?:git[:@+]|[a-z+]+://).*[/:])pi-team(?:\.git)?(?:[@#].*)?/?"
)
_MANIFEST: Final = "package.json"
_SINGLE_FILES: Final = (f"{_NAME}.ts", f"{_NAME}.js")


def rival(settings: Settings) -> str | None:
    """How the settings, or Pi's directory of extensions beside them, name the TypeScript pi-team.

    A package of that name counts, wherever it comes from, unless the settings load no extension of it.
    """
    return next(_rivals(settings), None)


def _rivals(settings: Settings) -> Iterator[str]:
    for package in settings.packages:
        source = package.get("source") if isinstance(package, dict) else package
        if isinstance(package, dict) and package.get("extensions") == []:
            continue
        if isinstance(source, str) and (_REMOTE.fullmatch(source) or _is_it(settings.path(source))):
            yield source
    for entry, path in settings.listed():
        if _is_it(path) or os.path.basename(path) in _SINGLE_FILES:
            yield str(entry.value)
    directory = os.path.join(settings.directory, "extensions")
    try:
        names = sorted(os.listdir(directory))
    except OSError:
        return
    for name in names:
        if name in _SINGLE_FILES or _is_it(os.path.join(directory, name)):
            yield os.path.join(directory, name)


def _is_it(path: str) -> bool:
    """Whether a directory, or the directory of a file, is a package of that name."""
    for directory in (path, os.path.dirname(path)):
        try:
            with open(os.path.join(directory, _MANIFEST), encoding="utf-8") as stream:
                manifest = json.load(stream)
        except (OSError, ValueError):
            continue
        name = manifest.get("name") if isinstance(manifest, dict) else None
        return isinstance(name, str) and name.split("/")[-1] == _NAME
    return False
