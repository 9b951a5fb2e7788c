"""Every number of pi-team, each with its unit (docs/limits.md).

Lengths of text are in code points unless the name says bytes. Times are in seconds unless the
name says milliseconds. What bounds a write does not make a record that a peer wrote corrupt:
readers accept longer text (docs/record-format.md, "Payload").
"""

from __future__ import annotations

from typing import Final

# Names and text
NAME_PATTERN: Final = r"[a-z][a-z0-9-]{0,47}"
"""A team name or an alias, the whole string."""
IDENTIFIER_CHARACTERS: Final = 128
"""Longest session, token, id, root id, parent id and claim."""
CWD_CHARACTERS: Final = 4_096
SUBJECT_CHARACTERS: Final = 160
BODY_BYTES: Final = 16_000
"""Body of a request or note, as UTF-8."""
SEND_INPUT_BYTES: Final = 20_000
"""The whole send input serialized as JSON."""
STORED_BODY_CHARACTERS: Final = 16_000
"""Longest body that a record of ours holds (a result's body is not bound by BODY_BYTES)."""

# Reports (the result of a request)
REPORT_BYTES: Final = 32_000
"""A report serialized as JSON."""
REPORT_FIT_BYTES: Final = 31_000
"""Files are cut until the report fits this."""
REPORT_FILES: Final = 50
REPORT_TESTS: Final = 50
REPORT_FILE_CHARACTERS: Final = 4_096
AUTOMATIC_RESULT_CHARACTERS: Final = 3_000
"""The last assistant text in an automatic result."""

# Capacity
MEMBERS: Final = 100
RECORDS: Final = 500
"""Messages per team; one slot is reserved for the result of each outstanding request."""
MEMBER_SLOTS: Final = 50
"""Unsettled deliveries per member, plus one reserved per request it has outstanding."""
THREAD_MESSAGES: Final = 8
"""Non-result messages with one root id."""
DUPLICATE_WINDOW: Final = 60.0
"""Seconds in which the same sender, recipient, subject and body is refused."""
RECORD_BYTES: Final = 32_000_000
JSON_DEPTH: Final = 64
"""Deepest nesting of a JSON value; a bound that all readers share, unlike the height of a stack."""
REVISIONS_KEPT: Final = 32
"""Slots kept below the newest; pruning starts at twice this number."""
REVISION_MAX: Final = 2**53 - 1

# Presence
HEARTBEAT_INTERVAL: Final = 2.0
PRESENCE_EXPIRY: Final = 30.0
PRESENCE_BYTES: Final = 4_096

# Locks and waiting
LOCK_LIFETIME: Final = 10.0
"""Age at which a lock abandoned by a crashed writer is reclaimed."""
LOCK_POLL_INTERVAL: Final = 0.003
WRITE_PATIENCE: Final = 15.0
"""Waiting for locks and retries together, then BUSY."""
LOOK_PATIENCE: Final = 0.5
"""How long a look waits for the locks when it could help a pending publication."""
SLOW_NOTICE: Final = 1.0
"""A command that waits longer than this says for what."""
LEFTOVER_AGE: Final = 3_600.0
"""Age at which a left-over file from another boot or an older peer is swept."""

# Automatic turns and review (session policy)
AUTOMATIC_TURNS: Final = 5
REVIEW_AFTER: Final = 300.0
REVIEW_INTERVAL: Final = 60.0
REVIEWS_WITHOUT_CHANGE: Final = 3
