"""``python -m lanner`` is the command ``lanner``."""

from lanner.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
