"""What is built: the wheel has the package and nothing else, the sdist all that its tests need."""

from __future__ import annotations

import ast
import email
import json
import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from typing import TYPE_CHECKING, Final

import pytest

import pi_team
import repository

if TYPE_CHECKING:
    from email.message import Message
    from pathlib import Path

pytestmark = pytest.mark.slow  # builds, explores or measures for seconds

NAME: Final = f"pi_team-{pi_team.__version__}"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the sdist and the wheel, built as the build frontend would, without a network."""
    directory = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-t", "wheel", "-d", str(directory)]
    subprocess.run(command, cwd=repository.ROOT, check=True, capture_output=True)
    return directory


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    return built / f"{NAME}-py3-none-any.whl"


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        return email.message_from_string(archive.read(f"{NAME}.dist-info/METADATA").decode())


def _requirements(metadata: Message) -> set[str]:
    """The libraries that users need."""
    lines = metadata.get_all("Requires-Dist", [])
    return {line.split(">=")[0] for line in lines if "extra ==" not in line}


def test_the_wheel_has_the_package_and_nothing_else(wheel: Path) -> None:
    """A module or `py.typed` is missing from what users install, or tests and generated files are in it."""
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    package = {name for name in repository.files() if name.startswith("pi_team/")}
    assert "pi_team/py.typed" in package
    extension = {name for name in package if name.startswith("pi_team/hosts/pi/extension/")}
    assert {"pi-team.ts", "package.json"} <= {name.rsplit("/", 1)[1] for name in extension}
    about = {f"{NAME}.dist-info/{name}" for name in ("METADATA", "WHEEL", "RECORD", "entry_points.txt")}
    assert names == package | about | {f"{NAME}.dist-info/licenses/LICENSE"}


def test_the_sdist_has_what_the_tests_need(built: Path) -> None:
    """A file that a test reads is missing from the source distribution, so that nobody can run it there."""
    with tarfile.open(built / f"{NAME}.tar.gz") as archive:
        names = {member.name.removeprefix(f"{NAME}/") for member in archive.getmembers() if member.isfile()}
    assert names - {"PKG-INFO"} == set(repository.files())
    assert "pi_team/hosts/pi/extension/pi-team.ts" in names


def test_the_metadata_is_complete(metadata: Message) -> None:
    """What an index or an installer shows of the package, and what it needs to run."""
    assert metadata["Name"] == "pi-team"
    assert metadata["Version"] == pi_team.__version__
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["License-Expression"] == "MIT"
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert str(metadata.get_payload()).strip() == repository.text("README.md").strip()
    assert "Typing :: Typed" in metadata.get_all("Classifier", [])


def test_what_is_imported_is_required_and_the_reverse(metadata: Message) -> None:
    """The package imports a library that only the development environment brings, or requires one in vain."""
    imported: set[str] = set()
    for name in repository.files():
        if name.startswith("pi_team/") and name.endswith(".py"):
            for node in ast.walk(ast.parse(repository.text(name))):
                if isinstance(node, ast.Import):
                    imported |= {alias.name.split(".")[0] for alias in node.names}
                elif isinstance(node, ast.ImportFrom):
                    imported.add((node.module or "").split(".")[0])
    assert imported - sys.stdlib_module_names - {"pi_team"} == _requirements(metadata)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_the_wheel_installs_and_runs(wheel: Path, tmp_path: Path) -> None:
    """In an environment with nothing else: the command starts, and a team can be made and looked at."""
    venv.create(tmp_path / "venv", with_pip=True)
    scripts = tmp_path / "venv" / "bin"
    install = [
        str(scripts / "python"),
        "-m",
        "pip",
        "install",
        "-q",
        "--disable-pip-version-check",
        str(wheel),
    ]
    subprocess.run(install, check=True, stdin=subprocess.DEVNULL)
    environment = os.environ | {"PI_CODING_AGENT_DIR": str(tmp_path / "agent")}
    environment.pop("PYTHONPATH", None)

    def said(*words: str) -> str:
        command = [str(scripts / "pi-team"), *words]
        return subprocess.check_output(command, env=environment, cwd=tmp_path, text=True)

    assert said("--version") == f"pi-team {pi_team.__version__}\n"
    said("create", "crew")
    assert said("teams") == "crew\n"
    said("pi", "install")
    (extension,) = json.loads((tmp_path / "agent" / "settings.json").read_text())["extensions"]
    assert extension.startswith(str(tmp_path / "venv"))
    assert said("doctor").startswith("Nothing is wrong")
