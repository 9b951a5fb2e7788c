"""Which scenarios an ordinary run explores, and which further ones a full run does."""

from __future__ import annotations

from typing import Final

import damage
import directories
import heartbeats
import restoring
import scenarios

ORDINARY: Final = (
    scenarios.writers(2, 1, bound=None),
    scenarios.writers(2, 2),
    scenarios.writers(3, 1, bound=2),
    scenarios.faults(2),
    scenarios.reader(2),
    scenarios.pruning(2, bound=2),
    scenarios.older_peers_slot(),
    scenarios.adopting(2),
    scenarios.skipping(2),
    directories.renaming(),
    directories.deleting(1),
    heartbeats.beside_deletion(),
    heartbeats.beside_renaming(),
    restoring.restoring(),
    damage.damaging(),
    scenarios.twice_cut(scenarios.writers(2, 1, bound=None)),
)
"""About a minute of one core that is idle; three writers with a bound of 3 take another one alone."""

# Two writers with three writes each, by the bound (`tests/explore/run.py --writers 2 3 BOUND`):
#   preemptions            0       1       2        3          4            5              6         all
#   schedules            110   2,324  48,158  702,140  9,608,606  107,203,016  1,120,202,538  2.9 · 10³⁰
#   states             1,049   9,717  44,039  163,241    432,173    1,078,111      2,151,243  12,203,419
# All of them take half an hour of one core and some gigabytes.
THOROUGH: Final = (
    scenarios.writers(2, 2, bound=None),
    scenarios.writers(3, 1),
    scenarios.writers(2, 3, bound=6),
    scenarios.writers(2, 2, kept=1),
    scenarios.pruning(2),
    scenarios.pruning(3),
    scenarios.pruning(4, bound=2),
    scenarios.faults(3, bound=2),
    scenarios.reader(2, writers=2),
    directories.renaming(None),
    directories.deleting(2),
    heartbeats.beside_deletion(beats=3),
    heartbeats.beside_renaming(beats=3),
    restoring.restoring(3, writes=2),
    damage.damaging(3, writes=2),
    damage.damaging(3, restorers=2),
    scenarios.twice_cut(scenarios.adopting(2, bound=2)),
    scenarios.twice_cut(scenarios.skipping(2, bound=2)),
)
