"""The benchmarks are scripts of the repository and no part of the distribution: their place is told here."""

from __future__ import annotations

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
