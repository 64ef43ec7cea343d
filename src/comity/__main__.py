"""`python -m comity` is the `comity` command."""

import os
import sys

# Python puts the working directory first for `-m`. Who looks at a store in a folder must not run the code that lies there.
if sys.path and sys.path[0] in {"", os.getcwd()}:  # noqa: PTH109
    del sys.path[0]

from comity.cli.main import main

sys.exit(main())
