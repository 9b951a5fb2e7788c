"""The repository that the tests stand in: its root, its files, and what its documents say."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
_GENERATED: Final = re.compile(r"(^|/)(\.(?!ci/|gitignore)[^/]*|__pycache__|[^/]*\.egg-info|PKG-INFO)(/|$)")
_FENCE: Final = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def files() -> list[str]:
    """The repository's files: what git does not ignore, or all that was unpacked where there is no git."""
    if (ROOT / ".git").exists():
        # The owner of a clone in a container need not be who runs the tests.
        command = ["git", "-c", "safe.directory=*", "ls-files", "-z"]
        listed = subprocess.run(
            [*command, "--cached", "--others", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            check=True,
        )
        names = set(filter(None, listed.stdout.decode().split("\0")))
    else:
        names = {path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*")}
        names = {name for name in names if not _GENERATED.search(name)}
    return sorted(name for name in names if (ROOT / name).is_file())


def text(name: str) -> str:
    """A file of the repository, as text."""
    return (ROOT / name).read_text("utf-8")


def documents() -> list[str]:
    """The names of all Markdown files."""
    return [name for name in files() if name.endswith(".md")]


def prose(document: str) -> str:
    """A document without its code blocks."""
    return _FENCE.sub("", text(document))


def headings(document: str) -> list[str]:
    """The headings of a document, as they are written; none where it is not there."""
    if not (ROOT / document).is_file():
        return []
    return re.findall(r"^#{1,6} (.+)$", prose(document), re.MULTILINE)
