"""The command line. Every module here imports what is heavy where it is used, so that `comity --help` stays fast."""
