"""Prints what the stale test has seen, in tables of Markdown. A pair is a write and the read of it."""

import statistics


def quantile(times, part):
    """The time that this part of the times does not exceed, in milliseconds."""
    return sorted(times)[min(int(len(times) * part), len(times) - 1)] * 1000


def spread(values, digits):
    """The median of the rounds, with least and greatest."""
    middle, least, greatest = statistics.median(values), min(values), max(values)
    return f"{middle:.{digits}f} ({least:.{digits}f} to {greatest:.{digits}f})"


def print_table(lines):
    """Prints a table in Markdown, the first line of which is its head."""
    widths = [max(map(len, column)) for column in zip(*lines)]
    for number, line in enumerate(lines):
        print("| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths)) + " |")
        if number == 0:
            print("|" + "|".join("-" * (width + 2) for width in widths) + "|")


def report(found):
    """Prints the rounds of all ways."""
    counts = [("way", "stale reads", "read at", "pairs a second")]
    times = [("ms", "write, median", "write, p99", "read, median", "read, p99")]
    for way, rounds in found.items():
        stale, reads = sum(part.stale for part in rounds), sum(len(part.reads) for part in rounds)
        servers = ", ".join(sorted(set().union(*(part.servers for part in rounds)))) or "not told"
        share = f"{stale} of {reads} ({stale / reads:.1%})"
        counts.append((way.name, share, servers, spread([part.rate() for part in rounds], 0)))
        cells = [
            spread([quantile(times_of(part), at) for part in rounds], 1)
            for times_of in (lambda part: part.writes, lambda part: part.reads)
            for at in (0.5, 0.99)
        ]
        times.append((way.name, *cells))
    print_table(counts)
    print()
    print_table(times)
