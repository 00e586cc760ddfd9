"""Where the command `emberlog` starts."""

import sys

from emberlog.loading import INTERRUPTED, Loading


def main() -> None:
    """Loads and runs the command line."""
    with Loading():
        from emberlog.cli import main as run
    try:
        run()
    except KeyboardInterrupt:  # just before or after the part of `run` that handles it
        print("interrupted", file=sys.stderr)
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
