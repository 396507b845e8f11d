"""What programs that write a page of docs/results have in common.

A page keeps what readers look for: its head, sums, the worst and the best rows. The whole tables are its record: CSV files beside the
program that writes the page. A test compares the record with what is computed now, row by row, and the page with what the record gives.
"""
import csv
import difflib
import io
import pathlib
import re
import statistics
import subprocess
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs/results"
MAX_DIFFERENCES = 20


def tables(text):
    """The page's rows, as cells, by title."""
    found = {}
    for section in re.split(r"^## ", text, flags=re.M)[1:]:
        title, *lines = section.splitlines()
        rows = [line[2:-2].split(" | ") for line in lines if line.startswith("| ")]
        found[title] = rows[2:]  # without the names of the columns and the line below them
    return found


def row(cells):
    """A line of a table."""
    assert not any("|" in cell or "\n" in cell for cell in cells), cells
    return f"| {' | '.join(cells)} |"


def markdown(columns, rows, numbers=()):
    """A table; the columns in `numbers` are aligned to the right."""
    lines = [columns, *([str(cell).replace("|", "\\|") for cell in row] for row in rows)]
    below = "|" + "".join(" ---: |" if name in numbers else " --- |" for name in columns)
    text = [f"| {' | '.join(line)} |" for line in lines]
    return "\n".join([text[0], below, *text[1:]]) + "\n"


def csv_text(columns, rows):
    """`rows`: dicts, or sequences in the order of the columns."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([row[name] for name in columns] if isinstance(row, dict) else row for row in rows)
    return out.getvalue()


def rows_of(text):
    """The rows of a CSV text, as dicts of strings."""
    return list(csv.DictReader(io.StringIO(text)))


def read(path):
    return rows_of(pathlib.Path(path).read_text(encoding="utf-8"))


def differences(name, kept, now):
    """Lines that say where two texts differ: empty if they are equal."""
    if kept == now:
        return []
    changed = [line for line in difflib.unified_diff(kept.splitlines(), now.splitlines(), n=0, lineterm="") if line[:3] not in ("---", "+++")]
    return [f"{name} (-) and what is written now (+) differ:", *changed[:MAX_DIFFERENCES],
            *([f"and {len(changed) - MAX_DIFFERENCES} more lines"] if len(changed) > MAX_DIFFERENCES else [])]


def size_text(size):
    unit = next((unit for unit in (20, 10) if size and size % (1 << unit) == 0), 0)
    return f"{size >> unit} {('B', 'KiB', 'MiB')[unit // 10]}"


def count_text(number, noun):
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def wrapped(text, columns=140):
    """A paragraph, or the items of a list, in lines of at most 140 columns. Code and links stay whole."""
    def filled(part):
        whole = re.sub(r"`[^`]*`|\[[^\]]*\]\([^)]*\)", lambda found: found.group().replace(" ", "\0"), " ".join(part.split()))
        return textwrap.fill(whole, columns, subsequent_indent="  " if part.startswith("- ") else "", break_long_words=False,
                             break_on_hyphens=False).replace("\0", " ")
    return "\n".join(map(filled, re.split(r"\n(?=- )", text.strip())))


def whole_text(files, command, computes="computes each row anew, writes all rows to the program's folder and prints those that differ"):
    """The paragraph of a page that says where its whole tables are. `files`: {path from the root: number of rows}."""
    links = [f"[{path}](../../{path}) ({count_text(rows, 'row')})" for path, rows in files.items()]
    return wrapped(f"The whole table{'s are' if len(files) > 1 else ' is'} in {' and '.join(links)}. `{command}` {computes}.")


def worst(rows, measure, count=1):
    """The `count` rows of the greatest measure, in the order of the table if equal."""
    return sorted(rows, key=lambda row: -measure(row))[:count]


def median(values):
    return statistics.median(list(values))


class Page:
    """A page of docs/results whose whole tables are recomputed by a program, and the record of these tables beside the page's script.

    `compute(program)` returns {name of a CSV file, or of a picture: its text}; pictures are not kept. `write(record)` makes the page's text of {name: rows}.
    """

    def __init__(self, script, name, records, compute, write):
        self.folder = pathlib.Path(script).resolve().parent
        self.script = pathlib.Path(script).resolve().relative_to(ROOT)
        self.path = RESULTS / name
        self.records, self.compute, self.write = records, compute, write

    def main(self, arguments):
        """--write PROGRAM, --check PROGRAM, or --page: writes the page from the record as it is."""
        if arguments == ["--page"]:
            self.path.write_text(self.from_record(), encoding="utf-8")
        elif len(arguments) == 2 and arguments[0] == "--write":
            for name, text in self.computed(arguments[1]).items():
                (self.folder / name).write_text(text, encoding="utf-8")
            self.path.write_text(self.from_record(), encoding="utf-8")
        elif len(arguments) == 2 and arguments[0] == "--check":
            bad = [line for name, text in self.computed(arguments[1]).items() for line in
                   differences(str((self.folder / name).relative_to(ROOT)), (self.folder / name).read_text(encoding="utf-8"), text)]
            self.end(bad, f"{self.script} --write {arguments[1]}")
        else:
            sys.exit(f"{self.script}: expected --write PROGRAM, --check PROGRAM or --page")

    def from_record(self):
        return self.write({name: read(self.folder / name) for name in self.records})

    def computed(self, program):
        """The records that are computed now; pictures too are written to the program's folder."""
        found = self.compute(program)
        assert set(self.records) <= set(found), found.keys()
        for name, text in found.items():
            (pathlib.Path(program).resolve().parent / name).write_text(text, encoding="utf-8")
        return {name: found[name] for name in self.records}

    def end(self, bad, command):
        """Ends with status 1 if there are differences, or if the page is not what the record gives."""
        bad = bad + differences(str(self.path.relative_to(ROOT)), self.path.read_text(encoding="utf-8"), self.from_record())
        if bad:
            sys.exit("\n".join([*bad, f"{command} writes them anew"]))
        print(f"{self.path.relative_to(ROOT)} and its record are as they would be written now")


def form(text):
    """The lines without their numbers: what two runs of a campaign have in common."""
    return re.sub(r"-?[0-9]+(\.[0-9]+)?", "0", text)


def main(page, writer):
    """Prints page(PROGRAM) for the arguments PROGRAM; for --check PROGRAM PAGE ends with status 1 if the file is another one."""
    if sys.argv[1] != "--check":
        sys.stdout.write(page(sys.argv[1]))
        return
    program, path = sys.argv[2:]
    now = page(program)
    print(now)
    if pathlib.Path(path).read_text(encoding="utf-8") != now:
        sys.exit(f"{path} is old: {writer} writes it anew")


def run(arguments, record, shown, page, check):
    """The command line of a program whose record is what another PROGRAM prints: --write PROGRAM, --check PROGRAM, or --page. `page(rows)`
    returns the text of the page `shown`; `check(PROGRAM)` returns what is wrong with the record."""
    name = pathlib.Path(sys.argv[0])
    if len(arguments) == 2 and arguments[0] == "--check":
        bad = check(arguments[1]) + differences(str(shown.relative_to(ROOT)), shown.read_text(encoding="utf-8"), page(read(record)))
        if bad:
            sys.exit("\n".join([*bad, f"{name.resolve().relative_to(ROOT)} --write {arguments[1]} writes them anew"]))
        return
    if len(arguments) == 2 and arguments[0] == "--write":
        record.write_text(subprocess.run(arguments[1:], check=True, stdout=subprocess.PIPE, text=True).stdout, encoding="utf-8")
    elif arguments != ["--page"]:
        sys.exit(f"{name.name}: expected --write PROGRAM, --check PROGRAM or --page")
    shown.write_text(page(read(record)), encoding="utf-8")
