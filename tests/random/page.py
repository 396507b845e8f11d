#!/usr/bin/python3
"""Writes docs/results/random.md from its record, campaign.txt, which `random-programs` prints.

page.py --page
"""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
import pages

RECORD = pathlib.Path(__file__).with_name("campaign.txt")
PAGE = pages.RESULTS / "random.md"
COMMAND = re.compile(r"Written by `(\S+ .*) >tests/random/campaign\.txt`\.")
FEW = 8  # reasons of a table


def sections(text):
    """The lines before the first second-level heading, and by the title of each those below it."""
    head, *parts = re.split(r"^## (.*)$", text, flags=re.MULTILINE)
    return head.splitlines(), {title: body.strip().splitlines() for title, body in zip(parts[::2], parts[1::2])}


def tables(lines):
    """The tables of a section: the cells of each row, the names of the columns first."""
    parts = "\n".join(lines).split("\n\n")
    return [[[cell.strip() for cell in line[1:-1].split("|")] for line in part.splitlines() if not line.startswith("| ---")] for part in parts]


def reasons(rows):
    """The most frequent reasons, whatever the node, and how many schedules have others."""
    (title, schedules), *rows = rows
    found = {}
    for reason, count in rows:
        reason = re.sub(r"^a node \(.*?\): ", "a node: ", reason)
        found[reason] = found.get(reason, 0) + int(count)
    ranked = sorted(found.items(), key=lambda pair: -pair[1])
    if len(ranked) > FEW + 1:
        ranked[FEW:] = [(f"{len(ranked) - FEW} others", sum(count for _, count in ranked[FEW:]))]
    return pages.markdown((title, schedules), ranked, (schedules,))


def page(record):
    head, found = sections(record)
    title, first, *rest = "\n".join(head).rstrip("\n").split("\n\n")
    first = COMMAND.sub("Written by `tests/random/page.py --page` from what `\\1` printed.", first)
    text = "\n\n".join([title, pages.wrapped(first), *rest]) + "\n"
    (sample, small), (_, whole) = found.items()
    counts, broken, *why = tables(whole)
    sampled = dict(tables(small)[0])
    columns = ("schedules", re.sub(r"The (.*), which .*", r"\1", sample), "all")
    text += ("\nThe whole tables are in [tests/random/campaign.txt](../../tests/random/campaign.txt). `./test.sh` runs the first seeds again, and "
             "compares.\n\n## Accepted, and right\n\n")
    text += pages.markdown(columns, [[name, sampled[name], count] for name, count in counts[1:]], columns[1:])
    text += "\n## Broken on purpose\n\n" + pages.markdown(broken[0], broken[1:], broken[0][1:])
    return text + "\n## Not accepted for every N\n\n" + "\n".join(map(reasons, why))


if __name__ == "__main__":
    if sys.argv[1:] != ["--page"]:
        sys.exit("page.py: expected --page")
    PAGE.write_text(page(RECORD.read_text(encoding="utf-8")), encoding="utf-8")
