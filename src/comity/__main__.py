"""`python -m comity` is the `comity` command."""

import sys

from comity.cli.main import main

sys.exit(main())
