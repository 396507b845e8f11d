#!/usr/bin/python3
"""Writes docs/results/descriptors.md and its record, descriptors.txt, from what `descriptors` prints.

descriptors_page.py --write build/tests/papers/descriptors     writes the record and the page
descriptors_page.py --check build/tests/papers/descriptors     whether they are what would be written now; exit status 1 if not
descriptors_page.py --page                                     writes the page from the record as it is
"""
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))
import pages

RECORD = pathlib.Path(__file__).with_name("descriptors.txt")
PAGE = pages.RESULTS / "descriptors.md"
HEAD = """# Bytes of a descriptor

Written by `tests/papers/descriptors_page.py --write build/tests/papers/descriptors`. The longest of all nodes (of 2000 spread evenly where
there are more), with the default block table; "-": the algorithm cannot do it, or a program's tables are too small. One descriptor serves
every message size.

The whole tables are in [tests/papers/descriptors.txt](../../tests/papers/descriptors.txt). A test compares them with the output of
`build/tests/papers/descriptors`.

"""
SHOWN = ("16", "1000", "100000")  # ranks


def tables(text):
    """[(title, rows)], the names of the columns first."""
    found = []
    for section in text.split("## ")[1:]:
        title, _, body = section.partition("\n")
        found.append((title, [[cell.strip() for cell in line[1:-1].split("|")] for line in body.splitlines() if line.startswith("| ")]))
    return found


def longest(rows):
    """Of each collective and algorithm, the topology with the longest descriptor of a rank or a router."""
    found = {}
    for collective, algorithm, topology, both in rows:
        most = max(int(cell) for cell in both.split(", ") if cell != "-")
        if most > found.get((collective, algorithm), (0,))[0]:
            found[collective, algorithm] = (most, topology, both)
    return [[*key, f"`{topology}`", both] for key, (_, topology, both) in found.items()]


def page(record):
    (anywhere, rows), (trees, tree_rows), (searched, searched_rows) = tables(record)
    names = rows[0]
    kept = [k for k, name in enumerate(names) if k < 2 or name in SHOWN]
    text = HEAD + f"## {anywhere}\n\n" + pages.markdown([names[k] for k in kept], [[row[k] for k in kept] for row in rows[1:]], SHOWN)
    text += f"\n## {trees}\n\n" + pages.markdown(tree_rows[0], tree_rows[1:])
    return text + f"\n## {searched}\n\nThe longest of each algorithm:\n\n" + pages.markdown(searched_rows[0], longest(searched_rows[1:]))


def main(arguments):
    if arguments == ["--page"]:
        PAGE.write_text(page(RECORD.read_text(encoding="utf-8")), encoding="utf-8")
        return
    if len(arguments) != 2 or arguments[0] not in ("--write", "--check"):
        sys.exit("descriptors_page.py: expected --write DESCRIPTORS, --check DESCRIPTORS or --page")
    now = subprocess.run(arguments[1:], check=True, stdout=subprocess.PIPE, text=True).stdout
    if arguments[0] == "--write":
        RECORD.write_text(now, encoding="utf-8")
        PAGE.write_text(page(now), encoding="utf-8")
        return
    bad = pages.differences("tests/papers/descriptors.txt", RECORD.read_text(encoding="utf-8"), now)
    bad += pages.differences("docs/results/descriptors.md", PAGE.read_text(encoding="utf-8"), page(RECORD.read_text(encoding="utf-8")))
    if bad:
        sys.exit("\n".join([*bad, f"tests/papers/descriptors_page.py --write {arguments[1]} writes them anew"]))
    print(f"{len(now.splitlines())} lines are as printed")


if __name__ == "__main__":
    main(sys.argv[1:])
