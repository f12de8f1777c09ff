"""`python -m pytest_circuits`: the command `pytest-circuits`."""

import sys

from .cli import main

sys.exit(main())
