"""Print the path of a Chromium for the console's browser tests; install it from the system's packages where that can be done.

`COMITY_CHROMIUM` names another browser. Where there is none and none can be installed, say how, and end with status 1.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
HOW = """There is no Chromium for the console's browser tests. Install one:
  Debian, Ubuntu   apt-get install chromium
  Fedora           dnf install chromium
  macOS            brew install --cask chromium
or name one that is there: COMITY_CHROMIUM=/path/to/chromium make test-console"""


def found() -> str | None:
    """Return the browser that is named or installed."""
    named = os.environ.get("COMITY_CHROMIUM")
    return named or next((path for name in NAMES if (path := shutil.which(name))), None)


def install() -> None:
    """Install Debian's package where that needs no password."""
    if shutil.which("apt-get") and os.geteuid() == 0:
        print("Installing chromium from the system's packages ...", file=sys.stderr)
        for command in (["apt-get", "update", "-qq"], ["apt-get", "install", "-y", "-qq", "chromium", "fonts-inter"]):
            subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


if __name__ == "__main__":
    if found() is None:
        install()
    path = found()
    if path is None:
        sys.exit(HOW)
    print(path)
