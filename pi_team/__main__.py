"""`python -m pi_team` is the `pi-team` command."""

import sys

from pi_team.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
