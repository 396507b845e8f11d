#!/usr/bin/python3
"""Gate: how many words docs/ has. Words are what `wc -w` counts: bars of tables, too.

words.py ROOT            prints the words of each folder: those of printed pages, those that people wrote, and the code and comments on their
                         pages; exit status 1 if docs/ has more than MAX_WORDS, a printed page more than MAX_PRINTED, or people wrote more
                         than MAX_WRITTEN
words.py ROOT --table N  prints the N pages on which people wrote the most

A page is printed if its first paragraph begins "Written by `COMMAND`", where COMMAND begins with a program of this tree. Every page of
docs/results and docs/algorithms except README.md must be. On another page the part between the comments `NAME: printed by COMMAND` and
`end of NAME` is printed."""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import tree

MAX_WORDS = 150_000
MAX_PRINTED = 6_000
MAX_WRITTEN = 85_000
ALL_PRINTED = ("docs/results/", "docs/algorithms/")
OTHER_PAGES = (".txt", ".html", ".rst", ".adoc", ".tex", ".markdown", ".MD")
WRITTEN_BY = re.compile(r"# .*\n\nWritten by `([^`\n]+)`")
PART = re.compile(r"<!-- ([\w-]+): printed by (\S+).*-->\n(.*?)<!-- end of \1 -->", re.S)
NOT_WRITTEN = re.compile(r"<!--.*?-->|^```.*?^```", re.M | re.S)
# Code: indented, after an empty line.
CODE = re.compile(r"(?<=\n\n)(?: {4}(?! *(?:[-*]|\d+\.) ).*\n)+")
PART_BEGINS = re.compile(r"<!-- [\w-]+: printed by ")


def count(text):
    return len(text.split())


def written(text):
    """The words of a page that people wrote."""
    return count(CODE.sub("", "\n\n" + NOT_WRITTEN.sub("", PART.sub("", text))))


def is_program(root, name):
    """Whether the tree has this file, or, for build/FOLDER/NAME, FOLDER/meson.build names NAME."""
    path = pathlib.PurePath(name)
    if not path.parts[0].startswith("build"):
        return (root / path).is_file()
    rules = root / pathlib.PurePath(*path.parts[1:-1]) / "meson.build"
    return rules.is_file() and f"'{path.name}'" in rules.read_text(encoding="utf-8")


def look(root, page):
    """(words that are printed, words that people wrote, findings) of a page."""
    text = tree.read(root, page)
    found = WRITTEN_BY.match(text)
    if found:
        program = found.group(1).split()[0]
        findings = [] if is_program(root, program) else [f"{page}:3: 'Written by `{program}`', which is no program of this tree"]
        if count(text) > MAX_PRINTED:
            findings.append(f"{page}:1: {count(text):,} words, a printed page has at most {MAX_PRINTED:,}")
        return count(text), 0, findings
    if page.startswith(ALL_PRINTED) and pathlib.PurePath(page).name != "README.md":
        return 0, written(text), [f"{page}:3: expected 'Written by `COMMAND`' below the title"]
    parts = PART.findall(text)
    findings = [f"{page}: the part {name} is printed by '{program}', which is no program of this tree"
                for name, program, _ in parts if not is_program(root, program)]
    if len(parts) != len(PART_BEGINS.findall(text)):
        findings.append(f"{page}: a part that is printed has no end; expected '<!-- end of NAME -->'")
    printed = sum(count(part) for _, _, part in parts)
    if printed > MAX_PRINTED:
        findings.append(f"{page}: {printed:,} printed words, a page has at most {MAX_PRINTED:,}")
    return printed, written(text), findings


def print_table(rows):
    print(f"{'':20} {'pages':>6} {'printed':>9} {'by people':>9} {'their code':>10} {'words':>9}")
    for folder, (pages, printed, by_people, words) in rows:
        print(f"{folder:20} {pages:6,} {printed:9,} {by_people:9,} {words - printed - by_people:10,} {words:9,}")


def main(root, table=None):
    root = pathlib.Path(root)
    looked = {page: look(root, page) for page in tree.files(root, ".md") if page.startswith("docs/")}
    if table:
        for page, (_, by_people, _) in sorted(looked.items(), key=lambda item: -item[1][1])[:int(table)]:
            print(f"{by_people:6,} {page}")
        return 0
    findings = [finding for _, _, found in looked.values() for finding in found] + ([] if looked else ["docs/: there is no page"])
    findings += [f"{file}: pages are .md files, whose words are counted" for file in tree.files(root, *OTHER_PAGES) if file.startswith("docs/")]
    folders = {}
    for page, (printed, by_people, _) in looked.items():
        sums = folders.setdefault(str(pathlib.PurePath(page).parent), [0, 0, 0, 0])
        for k, number in enumerate((1, printed, by_people, count(tree.read(root, page)))):
            sums[k] += number
    total = [sum(sums[k] for sums in folders.values()) for k in range(4)]
    print_table((*sorted(folders.items()), ("all", total)))
    if total[3] > MAX_WORDS:
        findings.append(f"docs/: {total[3]:,} words, at most {MAX_WORDS:,} are allowed")
    if total[2] > MAX_WRITTEN:
        findings.append(f"docs/: people wrote {total[2]:,} words, at most {MAX_WRITTEN:,} are allowed")
    return tree.report(findings, "keep the head, sums, the worst and the best rows on a page, and whole tables in files beside the command "
                                 "(tests/pages.py); say each thing once, where a reader looks for it")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[3] if sys.argv[2:3] == ["--table"] else None))
