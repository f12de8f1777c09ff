"""`python -m pytest_circuits`: the command `pytest-circuits`."""

import sys

from .cli.main import main

sys.exit(main())
