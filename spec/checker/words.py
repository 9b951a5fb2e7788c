"""What each action of a module means, in the words of docs/protocol.md and docs/lifecycles.md."""

from __future__ import annotations

from typing import Final

WORDS: Final[dict[str, dict[str, str]]] = {
    "Publication": {
        "Read": "reads the record and opens its descriptor (1)",
        "Look": "looks at the next slot (2)",
        "CheckBeforeHelp": "checks that the record is still the one that it read (2, help)",
        "SyncToHelp": "syncs revisions/ before helping (2, help)",
        "Help": "renames the owner's private file onto the record, if it is there (2, help)",
        "Adopt": "looks at the record again, and adopts the slot if it did not move (2)",
        "Link": "writes its private file and links it to its slot, if that is free (4, 5)",
        "Sync": "syncs revisions/ (6)",
        "Verify": "looks at the record before installing (7)",
        "Withdraw": "slept too long: removes its slot entry (7)",
        "Drop": "removes its private file and starts again (7)",
        "Install": "renames its private file onto the record (8)",
        "SyncToPrune": "syncs the team directory before pruning (9)",
        "Prune": "removes an old slot, or is done (9)",
        "Refuse": "fails before its link, or is killed: the operation is refused",
        "Stop": "fails after its link, or is killed: everything stays",
        "TakeBack": "fails after its link, takes its private file back and reports a refusal",
        "SweepLeftOver": "a left-over private file is swept",
        "PowerCut": "the power fails: every name keeps any value since its last sync, and all writers are gone",
        "OlderRead": "(older peer) reads the record and finds the next slot free",
        "OlderTake": "(older peer) renames its file into the slot",
        "OlderLink": "(older peer) links the slot's file to a temporary name",
        "OlderInstall": "(older peer) renames that onto the record",
    },
}
