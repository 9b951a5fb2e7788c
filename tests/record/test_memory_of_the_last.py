"""What is kept of the record before saves work and hides no error: other bytes are looked at."""

from __future__ import annotations

import hashlib
import json

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi_team.record import envelope
from pi_team.record.envelope import Damaged, Envelope, Previous, Publication

PUBLICATION = Publication("p", 1, 2, "host", "boot")
PREVIOUS = Previous(1, "0" * 64, "before")
LONG = json.dumps({"items": [f"item {number}, ünïcode" for number in range(2_000)]}, ensure_ascii=False)


def record(payload: str = LONG, revision: int = 2) -> bytes:
    return envelope.encode(revision, payload, PUBLICATION, PREVIOUS, {"extra": [1]})[0]


def afresh(data: bytes) -> Envelope:
    """Decode as a process does that has read nothing yet."""
    envelope._recent.clear()
    envelope._hasher.__init__()  # type: ignore[misc]
    return envelope.decode(data)


@pytest.mark.parametrize("payload", [LONG, '{"items":[]}'], ids=["long", "short"])
def test_what_was_written_is_what_is_read(payload: str) -> None:
    """The envelope that the writer remembers says what its bytes say."""
    data = record(payload)
    assert attrs.asdict(envelope.decode(data)) == attrs.asdict(afresh(data))
    assert envelope.decode(data) is envelope.decode(bytes(bytearray(data)))


@pytest.mark.parametrize("where", [0.001, 0.3, 0.6, 0.999])
def test_a_byte_that_changed_in_a_record_known_well(where: float) -> None:
    """Same length, same beginning, same end: one bit is enough to be found, wherever it is."""
    data = record()
    envelope.decode(data)
    start = data.index(b"item 0")
    damaged = bytearray(data)
    damaged[start + int((len(data) - start) * where)] ^= 1
    with pytest.raises((Damaged, ValueError)):
        envelope.decode(bytes(damaged))
    assert envelope.decode(data) == afresh(data)


def test_a_hash_of_other_bytes_is_refused_each_time() -> None:
    """What was refused once is not remembered as good."""
    wrong = record().replace(hashlib.sha256(LONG.encode()).hexdigest().encode(), b"0" * 64)
    for _ in range(2):
        with pytest.raises(Damaged, match="hash"):
            envelope.decode(wrong)


@given(
    st.lists(
        st.tuples(st.integers(0, 60_000), st.integers(0, 30_000), st.binary(max_size=20_000)),
        max_size=12,
    )
)
def test_the_hash_goes_on_from_any_payload_to_any_other(edits: list[tuple[int, int, bytes]]) -> None:
    """Appended, cut, changed at the beginning or the end: the hash is of the bytes, and of nothing before."""
    hasher = envelope._Hasher()
    data = LONG.encode()
    for position, removed, inserted in edits:
        data = data[:position] + inserted + data[position + removed :]
        framed = b"head" + data + b"tail"
        assert hasher.digest(framed, 4, 4 + len(data)) == hashlib.sha256(data).hexdigest()
        assert hasher.digest(data, 0, len(data)) == hashlib.sha256(data).hexdigest()
