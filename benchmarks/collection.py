"""How long `pytest --collect-only suites` takes, and what of it is Python and pytest alone.

python benchmarks/collection.py [repetitions]
"""

import statistics
import subprocess
import sys
import time

from rich.console import Console
from rich.table import Table

COMMANDS = {
    "pytest --collect-only suites": ["-m", "pytest", "--collect-only", "-q", "suites"],
    "pytest --version": ["-m", "pytest", "--version"],
    "python -c pass": ["-c", "pass"],
}


def main() -> None:
    """Prints one table."""
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    table = Table("command", "median s", "fastest s", box=None)
    for name, arguments in COMMANDS.items():
        seconds = []
        for _ in range(repetitions):
            start = time.perf_counter()
            subprocess.run([sys.executable, *arguments], check=True, capture_output=True)
            seconds.append(time.perf_counter() - start)
        table.add_row(name, f"{statistics.median(seconds):.2f}", f"{min(seconds):.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
