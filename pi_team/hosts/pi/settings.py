"""The text of Pi's settings, with our extension put in and taken out and everything else left as it was.

Pi reads its settings with JavaScript's `JSON.parse` after a byte order mark: no comments, no trailing commas.
So the reader of the record serves here too; it also refuses doubled keys, of which an edit could change
the wrong one. What Pi takes for extensions is told in its documents on settings and packages: paths of files
and directories, relative ones from the settings' own directory, and patterns and switches in front of paths.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Final

import attrs

from pi_team import json_text

if TYPE_CHECKING:
    from pi_team.json_text import JsonValue

_KEY: Final = "extensions"
_MARK: Final = "\ufeff"
_SWITCHES: Final = ("-", "!")
_INDENT: Final = "  "


class NoSettings(ValueError):
    """The text is not what Pi takes for settings, or not in a form that can be edited."""


@attrs.frozen
class Place:
    """A stretch of the text with the value that it holds: ``text[start:end]``."""

    value: JsonValue
    start: int
    end: int


@attrs.frozen
class Property(Place):
    """A member of the outermost object; it begins with its key."""

    key: str
    inside: int
    """Where the value begins."""


@attrs.frozen
class Insertion:
    """What is put into the text, and where; without it the text is what it was.

    Attributes:
        offset: in characters.
        text: what is put there.
        with_key: whether the list of extensions came with it.
    """

    offset: int
    text: str
    with_key: bool

    def into(self, text: str) -> str:
        """The text with it."""
        return text[: self.offset] + self.text + text[self.offset :]


@attrs.frozen
class Settings:
    """Settings as they are written.

    Attributes:
        text: the whole text.
        directory: where the file is, from which relative paths start.
        members: of the outermost object.
        entries: of the list of extensions.
    """

    text: str
    directory: str
    members: tuple[Property, ...]
    entries: tuple[Place, ...]

    @classmethod
    def parse(cls, text: str, directory: str) -> Settings:
        """Read the text; an empty one is no settings to Pi, and none here.

        Raises:
            NoSettings: it is not JSON, has doubled keys, or is no object with a list of extensions.
        """
        members: list[Property] = []
        entries: tuple[Place, ...] = ()
        try:
            if text:
                members = list(_members(text))
            for member in members:
                if member.key == _KEY:
                    entries = tuple(_items(text, member))
        except json_text.NotJson as error:
            raise NoSettings(str(error)) from error
        return cls(text, directory, tuple(members), entries)

    @property
    def packages(self) -> list[JsonValue]:
        """The packages, each a source or an object with one."""
        found = next((member.value for member in self.members if member.key == "packages"), None)
        return found if isinstance(found, list) else []

    def path(self, source: str) -> str:
        """The path that a source names, as Pi resolves it."""
        named = source.removeprefix("file://")
        return os.path.normpath(os.path.join(self.directory, os.path.expanduser(named)))

    def listed(self) -> list[tuple[Place, str]]:
        """The entries that name an extension, with the paths."""
        return [
            (entry, self.path(entry.value))
            for entry in self.entries
            if isinstance(entry.value, str) and not entry.value.startswith((*_SWITCHES, "+"))
        ]

    def switch_off(self, path: str) -> str | None:
        """The entry that switches an extension off, if there is one."""
        for entry in self.entries:
            if isinstance(entry.value, str) and entry.value.startswith(_SWITCHES):
                named = self.path(entry.value[1:])
                if named == path or os.path.dirname(named) == path:
                    return entry.value
        return None

    def insertion(self, path: str) -> Insertion:
        """How to put an extension into the list, in the style of the text around it."""
        item = json.dumps(path, ensure_ascii=False)
        found = next((member for member in self.members if member.key == _KEY), None)
        if found is None:
            return self._with_key(item)
        if not self.entries:
            return Insertion(found.inside + 1, item, with_key=False)
        space = self.text[found.inside + 1 : self.entries[0].start] or (" " if len(self.entries) == 1 else "")
        return Insertion(self.entries[-1].end, f",{space}{item}", with_key=False)

    def without(self, entry: Place, *, with_key: bool) -> str:
        """The text without an entry; the list goes with its last entry where `with_key` says so."""
        if len(self.entries) == 1:
            member = next(member for member in self.members if member.key == _KEY)
            if with_key:
                return _cut(self.text, member, self.members)
            return self.text[: member.inside] + "[]" + self.text[member.end :]
        return _cut(self.text, entry, self.entries)

    def _with_key(self, item: str) -> Insertion:
        line = "\r\n" if "\r\n" in self.text else "\n"
        whole = f"{line}{_INDENT}{json.dumps(_KEY)}: [{line}{_INDENT * 2}{item}{line}{_INDENT}]"
        if not self.text:
            return Insertion(0, f"{{{whole}{line}}}{line}", with_key=True)
        opening = self.text.index("{")
        if not self.members:
            rest = self.text[opening + 1 : self.text.rindex("}")]
            return Insertion(opening + 1, whole + ("" if "\n" in rest else line), with_key=True)
        space = self.text[opening + 1 : self.members[0].start]
        if "\n" in space:
            unit = space[space.rindex("\n") + 1 :]
            whole = f"{space}{json.dumps(_KEY)}: [{space}{unit}{item}{space}]"
        else:
            whole = f"{space}{json.dumps(_KEY)}:{space}[{item}]"
        return Insertion(self.members[-1].end, f",{whole}", with_key=True)


def _members(text: str) -> list[Property]:
    reader = json_text.Reader(text, len(_MARK) if text.startswith(_MARK) else 0)
    reader.enter("{")
    members: dict[str, Property] = {}
    while reader.more("}"):
        start = reader.position
        key = reader.key()
        span = reader.span(key)
        if key in members:
            raise json_text.NotJson(f"duplicate key {key!r}")
        members[key] = Property(span.value, start, span.end, key, span.start)
    reader.finish()
    return list(members.values())


def _items(text: str, member: Property) -> list[Place]:
    if not isinstance(member.value, list):
        raise NoSettings(f"{_KEY} is no list")
    reader = json_text.Reader(text, member.inside)
    reader.enter("[")
    items: list[Place] = []
    while reader.more("]"):
        span = reader.span()
        items.append(Place(span.value, span.start, span.end))
    return items


def _cut(text: str, place: Place, siblings: tuple[Place, ...]) -> str:
    """The text without one of several places, and without the comma and the space that went with it."""
    number = siblings.index(place)
    if len(siblings) == 1:
        before, after = text.rindex("{", 0, place.start) + 1, text.index("}", place.end)
    elif number == 0:
        before, after = place.start, siblings[1].start
    else:
        before, after = siblings[number - 1].end, place.end
    return text[:before] + text[after:]
