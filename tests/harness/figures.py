"""The figures of the failure matrix, as JSON and as the table of docs/failure-modes.md."""

import json
import sys


def seconds(value):
    return f"{value:.1f} s"


def cell(rows):
    """The worst result of one fault under one route."""
    refused = max(row["refused_seconds"] for row in rows)
    known = [row["normal_seconds"] for row in rows]
    words = [f"refused {seconds(refused)}" if refused else "none refused"]
    words.append("until it is back" if None in known else f"normal {seconds(max(known))}")
    stale = sum(row["stale_reads"] for row in rows)
    if stale:
        words.append(f"**{stale:,} stale**, worst {seconds(max(row['worst_stale_seconds'] for row in rows))}")
    return ", ".join(words)


def table(rows):
    """A table with a line for each fault and a column for each route, in the order of the rows."""
    faults = list(dict.fromkeys(row["fault"] for row in rows))
    routes = list(dict.fromkeys(row["route"] for row in rows))
    lines = ["| | " + " | ".join(routes) + " |", "|---" * (len(routes) + 1) + "|"]
    for fault in faults:
        cells = [[row for row in rows if (row["fault"], row["route"]) == (fault, route)] for route in routes]
        lines.append(f"| {fault} | " + " | ".join(cell(found) if found else "" for found in cells) + " |")
    return "\n".join(lines) + "\n"


def write(rows, folder):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "matrix.json").write_text(json.dumps(rows, indent=1) + "\n")
    (folder / "matrix.md").write_text(table(rows))


if __name__ == "__main__":
    # This prints one table of several runs: python -m harness.figures a/matrix.json b/matrix.json
    print(table([row for file in sys.argv[1:] for row in json.load(open(file))]), end="")
