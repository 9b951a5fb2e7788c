"""The extension goes into Pi's settings and out again, and nothing else of them changes."""

from __future__ import annotations

import errno
import json
import os
import shlex
import stat
import subprocess
import sys
import venv
from typing import TYPE_CHECKING, Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pi_team
import repository
from pi_team import errors
from pi_team.clocks import SystemClock
from pi_team.hosts.pi.installation import EXTENSION, Installation
from pi_team.hosts.pi.settings import Settings

if TYPE_CHECKING:
    from pathlib import Path

    from commands import Ended, Run

OTHER: Final = "/elsewhere/lib/python3.12/site-packages/pi_team/hosts/pi/extension"
"""Where an environment of former times had it."""
ITEM: Final = json.dumps(EXTENSION)

FORMS: Final = {
    "nothing": (b"", f'{{\n  "extensions": [\n    {ITEM}\n  ]\n}}\n'),
    "an empty object": (b"{}", f'{{\n  "extensions": [\n    {ITEM}\n  ]\n}}'),
    "an empty object of two lines": (b"{\n}\n", f'{{\n  "extensions": [\n    {ITEM}\n  ]\n}}\n'),
    "as Pi writes it": (
        b'{\n  "theme": "dark",\n  "a": {\n    "b": [1, 2]\n  }\n}',
        f'{{\n  "theme": "dark",\n  "a": {{\n    "b": [1, 2]\n  }},\n  "extensions": [\n    {ITEM}\n  ]\n}}',
    ),
    "tabs": (
        b'{\n\t"theme": "dark"\n}\n',
        f'{{\n\t"theme": "dark",\n\t"extensions": [\n\t\t{ITEM}\n\t]\n}}\n',
    ),
    "one line": (b'{"theme":"dark"}', f'{{"theme":"dark","extensions":[{ITEM}]}}'),
    "one airy line": (b'{ "theme": "dark" }\n', f'{{ "theme": "dark", "extensions": [{ITEM}] }}\n'),
    "a list": (
        b'{\n  "extensions": [\n    "/a.ts",\n    "/b"\n  ],\n  "theme": "dark"\n}\n',
        f'{{\n  "extensions": [\n    "/a.ts",\n    "/b",\n    {ITEM}\n  ],\n  "theme": "dark"\n}}\n',
    ),
    "a list in one line": (b'{"extensions": ["/a.ts"]}', f'{{"extensions": ["/a.ts", {ITEM}]}}'),
    "an empty list": (b'{"extensions": []}', f'{{"extensions": [{ITEM}]}}'),
    "a Windows editor's": (
        b'\xef\xbb\xbf{\r\n  "theme": "dark"\r\n}\r\n',
        f'\ufeff{{\r\n  "theme": "dark",\r\n  "extensions": [\r\n    {ITEM}\r\n  ]\r\n}}\r\n',
    ),
    "text of all kinds": (
        '{"extensions": [], "ü": "\\u00e4 😀 \\ud83d"}'.encode(),
        f'{{"extensions": [{ITEM}], "ü": "\\u00e4 😀 \\ud83d"}}',
    ),
}


@pytest.fixture
def agent(home: Path) -> Path:
    home.mkdir(mode=0o700)
    return home


def settings(agent: Path) -> Any:
    return json.loads((agent / "settings.json").read_text("utf-8-sig"))


def rewritten(agent: Path, **changes: Any) -> None:
    """As Pi writes its settings when something was changed in it."""
    (agent / "settings.json").write_text(json.dumps(settings(agent) | changes, indent=2))


def refused(ended: Ended, code: str) -> Any:
    assert (ended.status, ended.out, ended.error["code"]) == (1, "", code)
    return ended.error


# --- in and out


@pytest.mark.parametrize("form", FORMS)
def test_it_is_put_in_in_the_style_around_it_and_taken_out_without_a_trace(
    form: str, agent: Path, run: Run
) -> None:
    """An edit changed something else: a space, the order, a line's end, an escape."""
    before, after = FORMS[form]
    path = agent / "settings.json"
    path.write_bytes(before)
    said = run("pi", "install", "--json").object
    assert said == {
        "settings": str(path),
        "extension": EXTENSION,
        "python": sys.executable,
        "changed": True,
        "version": pi_team.__version__,
    }
    assert path.read_bytes() == after.encode()
    assert settings(agent)["extensions"][-1] == EXTENSION
    assert run("doctor").status == 0
    assert run("pi", "uninstall", "--json").object["changed"] is True
    assert path.read_bytes() == before
    assert sorted(os.listdir(agent)) == ["settings.json"]


def test_what_was_not_there_is_made_and_removed_again(home: Path, run: Run) -> None:
    assert run("pi", "install").status == 0
    assert settings(home) == {"extensions": [EXTENSION]}
    record = json.loads((home / "pi-team.json").read_text())
    assert (record["python"], record["version"]) == (sys.executable, pi_team.__version__)
    assert record["extension"] == EXTENSION
    assert run("pi", "uninstall").status == 0
    assert os.listdir(home) == []


def test_repeating_changes_nothing(agent: Path, run: Run) -> None:
    """The second installation writes the file again, or forgets how to undo the first."""
    before = b'{ "theme": "dark" }'
    (agent / "settings.json").write_bytes(before)
    run("pi", "install")

    def written() -> list[tuple[int, int]]:  # without the time of access, which reading moves
        found = [(agent / name).stat() for name in ("settings.json", "pi-team.json")]
        return [(status.st_ino, status.st_mtime_ns) for status in found]

    seen = written()
    again = run("pi", "install", "--json")
    assert again.object["changed"] is False
    assert written() == seen
    run("pi", "uninstall")
    assert (agent / "settings.json").read_bytes() == before
    assert run("pi", "uninstall", "--json").object["changed"] is False
    assert (agent / "settings.json").read_bytes() == before


def test_nothing_is_made_by_an_uninstallation_alone(home: Path, run: Run) -> None:
    assert run("pi", "uninstall", "--json").object["changed"] is False
    assert not home.exists()


def test_only_the_entry_goes_where_the_settings_were_changed_meanwhile(agent: Path, run: Run) -> None:
    """Pi has written its settings anew, with more in them; the list goes where we have brought it."""
    (agent / "settings.json").write_text('{"theme":"dark"}')
    run("pi", "install")
    rewritten(agent, theme="light")
    run("pi", "uninstall")
    assert settings(agent) == {"theme": "light"}
    run("pi", "install")
    rewritten(agent, extensions=["/a.ts", EXTENSION, "/b.ts"])
    run("pi", "uninstall")
    assert settings(agent) == {"theme": "light", "extensions": ["/a.ts", "/b.ts"]}
    rewritten(agent, extensions=[])
    run("pi", "install")
    rewritten(agent, theme="dark")
    run("pi", "uninstall")
    assert settings(agent) == {"theme": "dark", "extensions": []}


def test_a_file_that_we_made_stays_when_something_else_is_in_it(home: Path, run: Run) -> None:
    run("pi", "install")
    rewritten(home, theme="dark")
    run("pi", "uninstall")
    assert settings(home) == {"theme": "dark"}


def test_an_environment_of_former_times_is_replaced(agent: Path, run: Run) -> None:
    """Python or the environment was changed: two extensions would be loaded, or one that is gone."""
    (agent / "settings.json").write_text(json.dumps({"extensions": ["/a.ts", OTHER, "/b.ts"]}))
    run("pi", "install")
    assert settings(agent) == {"extensions": ["/a.ts", "/b.ts", EXTENSION]}
    run("pi", "uninstall")
    assert settings(agent) == {"extensions": ["/a.ts", "/b.ts"]}


def test_a_package_that_somebody_has_put_in_is_left_to_them(agent: Path, run: Run) -> None:
    """`pi install DIRECTORY` has it already: listed twice, Pi would be told twice."""
    before = json.dumps({"packages": [EXTENSION]})
    (agent / "settings.json").write_text(before)
    run("pi", "install")
    assert (agent / "settings.json").read_text() == before
    assert run("doctor").status == 0
    run("pi", "uninstall")
    assert (agent / "settings.json").read_text() == before


def test_mode_and_link_of_the_settings_stay(agent: Path, tmp_path: Path, run: Run) -> None:
    """The settings are a link into somebody's dotfiles: the link was replaced, or the mode opened."""
    real = tmp_path / "dotfiles.json"
    real.write_text("{}")
    real.chmod(0o640)
    (agent / "settings.json").symlink_to(real)
    run("pi", "install")
    assert (agent / "settings.json").is_symlink()
    assert EXTENSION in real.read_text()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    run("pi", "uninstall")
    assert (agent / "settings.json").is_symlink()
    assert real.read_text() == "{}"
    real.unlink()  # the link leads nowhere now
    run("pi", "install")
    assert EXTENSION in real.read_text()
    run("pi", "uninstall")
    assert (agent / "settings.json").is_symlink()
    assert not real.exists()


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
LAYOUTS = st.sampled_from([None, 0, 1, 2, 4, "\t"])


@given(
    others=st.dictionaries(st.text(max_size=8).filter(lambda key: key != "extensions"), VALUES, max_size=4),
    entries=st.none() | st.lists(st.text(max_size=8), max_size=3),
    last=st.booleans(),
    indent=LAYOUTS,
    compact=st.booleans(),
)
def test_any_settings_in_any_layout_are_edited_to_what_was_meant(
    others: dict[str, Any], entries: list[str] | None, last: bool, indent: Any, compact: bool
) -> None:
    """An edit by text and an edit by value differ."""
    own = {} if entries is None else {"extensions": entries}
    value = {**others, **own} if last else {**own, **others}
    separators = (",", ":") if compact else None
    text = json.dumps(value, indent=indent, separators=separators)
    after = Settings.parse(Settings.parse(text, "/d").insertion("/new").into(text), "/d")
    assert json.loads(after.text) == value | {"extensions": [*(entries or []), "/new"]}
    (*_, (entry, _)) = after.listed()
    assert json.loads(after.without(entry, with_key=entries is None)) == value


# --- refusals

UNREADABLE: Final = {
    "a comment": b'{\n  // mine\n  "theme": "dark"\n}',
    "a comma too much": b'{"theme": "dark",}',
    "half a file": b'{"theme": "da',
    "blanks": b" \n",
    "a list": b"[]",
    "a list's place taken": b'{"extensions": "/a.ts"}',
    "a doubled key": b'{"extensions": ["/a"], "extensions": ["/b"]}',
    "no UTF-8": b'{"theme": "\xff"}',
}


@pytest.mark.parametrize("command", ["install", "uninstall"])
@pytest.mark.parametrize("what", UNREADABLE)
def test_settings_that_cannot_be_read_are_left_as_they_are(
    what: str, command: str, agent: Path, run: Run
) -> None:
    """Pi does not read them either, or a text edit could hit the wrong place."""
    path = agent / "settings.json"
    path.write_bytes(UNREADABLE[what])
    error = refused(run("pi", command, "--json"), "PI_SETTINGS")
    assert str(path) in error["message"]
    assert path.read_bytes() == UNREADABLE[what]
    assert os.listdir(agent) == ["settings.json"]


def test_settings_that_are_no_file_are_refused(agent: Path, run: Run) -> None:
    """A pipe would make the command wait for ever."""
    os.mkfifo(agent / "settings.json")
    refused(run("pi", "install", "--json"), "PI_SETTINGS")
    (agent / "settings.json").unlink()
    (agent / "settings.json").mkdir()
    refused(run("pi", "install", "--json"), "PI_SETTINGS")


@pytest.fixture
def checkout(agent: Path) -> Path:
    """A directory with a package called as the TypeScript pi-team is."""
    directory = agent / "code" / "team-of-mine"
    directory.mkdir(parents=True)
    (directory / "package.json").write_text('{"name": "@somebody/pi-team"}')
    (directory / "main.ts").write_text("")
    return directory


RIVALS: Final = (
    {"packages": ["npm:pi-team"]},
    {"packages": ["npm:@somebody/pi-team@0.6.1"]},
    {"packages": [{"source": "npm:pi-team", "skills": []}]},
    {"packages": ["git:github.com/somebody/pi-team@v1"]},
    {"packages": ["https://example.org/somebody/pi-team.git"]},
    {"packages": ["git@example.org:somebody/pi-team"]},
    {"packages": ["./code/team-of-mine"]},
    {"extensions": ["code/team-of-mine/main.ts"]},
    {"extensions": ["/somewhere/pi-team.ts"]},
)


@pytest.mark.usefixtures("checkout")
@pytest.mark.parametrize("value", RIVALS, ids=json.dumps)
def test_the_typescript_pi_team_is_not_joined_by_a_second(value: Any, agent: Path, run: Run) -> None:
    """Both have the command and the tools: neither would work."""
    (agent / "settings.json").write_text(json.dumps(value))
    error = refused(run("pi", "install", "--json"), "PI_CONFLICT")
    source = next(iter(value.values()))[0]
    assert (source["source"] if isinstance(source, dict) else source) in error["message"]
    assert settings(agent) == value
    assert not (agent / "pi-team.json").exists()


def test_the_typescript_pi_team_is_also_found_where_pi_looks_by_itself(agent: Path, run: Run) -> None:
    (agent / "extensions" / "team").mkdir(parents=True)
    (agent / "extensions" / "team" / "package.json").write_text('{"name": "pi-team"}')
    refused(run("pi", "install", "--json"), "PI_CONFLICT")


NO_RIVALS: Final = (
    {"packages": ["npm:pi-teams", "npm:@pi-team/other", "npm:not-pi-team", "git:example.org/pi-team/x"]},
    {"packages": [{"source": "npm:pi-team", "extensions": []}, 7, {"source": None}]},
    {"packages": "npm:pi-team", "extensions": [7, "-/somewhere/pi-team.ts", "!pi-team"]},
)


@pytest.mark.parametrize("value", NO_RIVALS, ids=json.dumps)
def test_what_is_called_alike_or_loads_nothing_is_no_conflict(value: Any, agent: Path, run: Run) -> None:
    (agent / "settings.json").write_text(json.dumps(value))
    assert run("pi", "install", "--json").object["changed"] is True
    assert settings(agent) == value | {"extensions": [*value.get("extensions", []), EXTENSION]}


@pytest.mark.parametrize("tagged", ["around", "itself"])
def test_an_environment_in_a_cache_is_refused(tagged: str, home: Path, tmp_path: Path) -> None:
    """`uvx` and `pipx run` make environments in a cache, which is emptied without a word; a tag of the
    environment's own is what uv gives every environment, and says nothing."""
    environment = tmp_path / "cache" / "archive" / "x"
    venv.create(environment, symlinks=True)
    place = {"around": tmp_path / "cache", "itself": environment}[tagged]
    (place / "CACHEDIR.TAG").write_text("Signature: 8a477f597d28d172789f06886806bc55\n# This is a cache.\n")
    path = os.pathsep.join([str(repository.ROOT), *filter(os.path.isdir, sys.path)])
    ended = subprocess.run(
        [environment / "bin" / "python", "-m", "pi_team", "pi", "install", "--json"],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    if tagged == "itself":
        assert ended.returncode == 0, ended.stderr
        assert json.loads(ended.stdout)["python"] == str(environment / "bin" / "python")
    else:
        error = json.loads(ended.stderr)["error"]
        assert (ended.returncode, error["code"]) == (1, "PI_ENVIRONMENT")
        assert str(tmp_path / "cache") in error["message"]
        assert not home.exists()


class Fast(SystemClock):
    """A clock on which sleeping takes no time."""

    def __init__(self) -> None:
        self.slept = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.slept

    def sleep(self, seconds: float) -> None:
        self.slept += seconds


def test_pis_own_lock_is_respected_and_an_abandoned_one_taken(agent: Path) -> None:
    """Pi writes its settings just now: one of the two changes would be lost."""
    path, lock = agent / "settings.json", agent / "settings.json.lock"
    path.write_text("{}")
    lock.mkdir()
    with pytest.raises(errors.Busy):
        Installation(str(agent), clock=Fast()).install()
    assert path.read_text() == "{}"
    assert lock.is_dir()
    os.utime(lock, (0, 0))
    assert Installation(str(agent), clock=Fast()).install().changed
    assert not lock.exists()


@pytest.mark.parametrize("failing", ["pi-team.json", "settings.json"])
def test_a_refusing_system_leaves_whole_files_and_a_repetition_completes_it(
    failing: str, agent: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is full at the one file or at the other: neither is half written, and nothing is lost."""
    before = '{"theme": "dark"}'
    (agent / "settings.json").write_text(before)
    replace = os.replace

    def full(source: str, target: str) -> None:
        if os.path.basename(target) == failing:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        replace(source, target)

    monkeypatch.setattr(os, "replace", full)
    refused(run("pi", "install", "--json"), "STORAGE")
    monkeypatch.undo()
    monkeypatch.setenv("PI_CODING_AGENT_DIR", str(agent))
    assert (agent / "settings.json").read_text() == before
    assert {*os.listdir(agent)} <= {"settings.json", "pi-team.json"}
    assert run("pi", "install").status == 0
    assert settings(agent)["extensions"] == [EXTENSION]
    run("pi", "uninstall")
    assert (agent / "settings.json").read_text() == before


# --- the doctor


def no_python(agent: Path) -> None:
    record = json.loads((agent / "pi-team.json").read_text())
    (agent / "pi-team.json").write_text(json.dumps(record | {"python": str(agent / "gone")}))


def python_without_us(agent: Path) -> None:
    bare = agent / "bare"
    bare.write_text('#!/bin/sh\necho "No module named pi_team" >&2\nexit 1\n')
    bare.chmod(0o755)
    record = json.loads((agent / "pi-team.json").read_text())
    (agent / "pi-team.json").write_text(json.dumps(record | {"python": str(bare)}))


def upgraded(agent: Path) -> None:
    record = json.loads((agent / "pi-team.json").read_text())
    (agent / "pi-team.json").write_text(json.dumps(record | {"version": "0.0.1"}))


def record_broken(agent: Path) -> None:
    (agent / "pi-team.json").write_text("{")


def record_gone(agent: Path) -> None:
    (agent / "pi-team.json").unlink()


def not_listed(agent: Path) -> None:
    rewritten(agent, extensions=["/a.ts"])


def settings_gone(agent: Path) -> None:
    (agent / "settings.json").unlink()


def extension_gone(agent: Path) -> None:
    record = json.loads((agent / "pi-team.json").read_text())
    (agent / "pi-team.json").write_text(json.dumps(record | {"extension": OTHER}))
    rewritten(agent, extensions=[OTHER])


def extension_gone_beside_ours(agent: Path) -> None:
    rewritten(agent, extensions=[EXTENSION, OTHER])


FAULTS: Final = {
    "PI_ENVIRONMENT": (no_python, python_without_us, upgraded, record_broken, record_gone),
    "PI_SETTINGS": (not_listed, settings_gone, extension_gone, extension_gone_beside_ours),
}


@pytest.mark.parametrize(
    ("code", "plant"), [(code, plant) for code, plants in FAULTS.items() for plant in plants]
)
def test_each_fault_is_named_and_mended_by_its_command(code: str, plant: Any, agent: Path, run: Run) -> None:
    """A fault of the installation: looking changes nothing, and what is printed makes an end of it."""
    run("pi", "install")
    plant(agent)
    before = {name: (agent / name).read_bytes() for name in os.listdir(agent)}
    ended = run("doctor", "--json")
    assert {name: (agent / name).read_bytes() for name in os.listdir(agent)} == before
    findings = ended.object["findings"]
    assert (ended.status, {finding["code"] for finding in findings}) == (1, {code})
    for command in {finding["command"] for finding in findings}:
        program, *words = shlex.split(command)
        assert program == "pi-team"
        assert run(*words).status == 0
    assert run("doctor").status == 0


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("PI_CONFLICT", {"extensions": [EXTENSION], "packages": ["npm:pi-team"]}),
        ("PI_SETTINGS", {"extensions": [EXTENSION, f"-{EXTENSION}/pi-team.ts"]}),
        ("PI_SETTINGS", {"extensions": {}}),
    ],
)
def test_what_only_a_person_can_judge_has_no_command(code: str, value: Any, agent: Path, run: Run) -> None:
    """Which of the two to keep, why it was switched off, what the settings were meant to say."""
    run("pi", "install")
    (agent / "settings.json").write_text(json.dumps(value))
    (finding,) = run("doctor", "--json").object["findings"]
    assert (finding["code"], finding["command"]) == (code, "")
    assert finding["message"]


def test_the_doctor_has_nothing_to_say_where_nothing_was_installed(agent: Path, run: Run) -> None:
    (agent / "settings.json").write_text('{"packages": ["npm:pi-team"]}')
    assert run("doctor").status == 0


def test_the_words_after_an_installation_tell_what_comes_next(home: Path, run: Run) -> None:
    """Nobody finds out by themselves how a session joins, or what an upgrade needs."""
    first, again = run("pi", "install"), run("pi", "install")
    assert first.out == f"put the extension into {home / 'settings.json'}\n"
    assert again.out == f"the extension is in {home / 'settings.json'}\n"
    assert "/team join TEAM ALIAS" in first.err
    assert "upgrade" in first.err
    assert run("pi", "uninstall").out == f"took the extension out of {home / 'settings.json'}\n"
    assert run("pi", "uninstall").out == f"the extension is not in {home / 'settings.json'}\n"
