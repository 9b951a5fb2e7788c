"""The public names: explicit, complete, and cheap to import."""

from __future__ import annotations

import subprocess
import sys

import pytest

import pi_team


@pytest.mark.parametrize("name", pi_team.__all__)
def test_every_public_name_is_there(name: str) -> None:
    """A name in `__all__` that its home module no longer has would fail only at its first use."""
    assert getattr(pi_team, name) is not None
    assert name in dir(pi_team)


def test_an_unknown_name_is_an_attribute_error() -> None:
    """The lazy lookup must not turn a misspelling into an import error."""
    with pytest.raises(AttributeError, match="Mailbax"):
        getattr(pi_team, "Mailbax")  # noqa: B009 - the lookup by name is what is tested


def test_importing_the_package_loads_no_library() -> None:
    """Import time is mostly other packages: `import pi_team` must not pull in any of them."""
    heavy = {"attr", "psutil", "transitions", "filelock", "click", "rich", "watchdog"}
    probe = "import sys, pi_team; print(*sys.modules, sep='\\n')"
    loaded = subprocess.run(
        [sys.executable, "-c", probe], check=True, capture_output=True, text=True
    ).stdout.split()
    assert not heavy & set(loaded)
