"""What goes wrong while packing, as the person who packs is told it."""

import sys
from collections.abc import Callable

# Apple's own Python is 3.9. Each program of the packing reads this file before what an older one does not know.
if sys.version_info < (3, 11):
    sys.exit(f"error: packing needs Python 3.11 or newer, and {sys.executable} is {sys.version.split()[0]}\n"
             "hint: put a newer `python3` before it on the PATH")


class PackagingError(Exception):
    """Something that the person who packs can mend. It is printed without a trace."""


def finish(work: Callable[[], None]) -> int:
    """Does the work of a command, and returns its exit code. What a person can mend is printed without a trace."""
    try:
        work()
    except (PackagingError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0
