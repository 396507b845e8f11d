#!/usr/bin/python3
"""Gate: sentences of pages and of comments in C++ begin with their subject, and name their nouns.

A sentence is a finding

- if it begins with "Of", "That of" or "Those of" ("Of course" is allowed);
- if it has more than two pronouns that point back to a noun: "that" or "those" in the place of a noun ("those of the root", "than
  that."), "these" before a verb, "one" in the place of a noun ("the first one"), and "it". More than two "it" count as two.

Pages are the .md files, except printed ones (docs/results, docs/algorithms) and the changelog. Code, headings and quoted words are not
read.
Comments are those of .h, .cc and .c files.

sentences.py ROOT            prints "file:line: why: sentence"; exit status 1 if there is any
"""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import tree

MAX_PRONOUNS = 2
PRINTED = ("docs/results/", "docs/algorithms/", "CHANGELOG.md", "findings/")
BEGINNING = re.compile(r"(?:Of(?! course\b)|(?:That|Those|These) of)\b")
VERB = (r"(?:is|are|was|were|has|have|had|does|do|did|can|cannot|may|must|will|would|need|needs|take|takes|come|comes|go|goes|get|gets|"
        r"give|gives|hold|holds|make|makes|say|says|stay|stays|end|ends|begin|begins|follow|follows|count|counts|cost|costs)")
END = r"(?=[.,;:)]|$)"
BEFORE = (r"(?:(?:^|[,;:(] ?)|\b(?:than|as|of|with|by|to|from|in|on|at|after|before|like|and|but|or|nor|because|if|for|are|is|only|also|"
          r"all|between|beside|below|above|without|over|until) )")
POINTS_BACK = (
    re.compile(rf"{BEFORE}(?:that|those)(?= (?:with|without|in|on|at|for|from|to|by|below|above|between|before|after|{VERB})\b)(?! is,)", re.I),
    re.compile(r"\b(?:that of\b|those(?= (?:of|that|which|who|whose|where)\b))", re.I),
    re.compile(rf"\b(?:that|those){END}(?! is,)", re.I),
    re.compile(rf"\bthese(?= {VERB}\b|[.,;:)]|$)", re.I),
    re.compile(rf"\b(?:this|that|each|every|which|(?:the|an?|another|any|no)(?: [\w-]+){{0,2}}) ones?(?= (?:of|in|on|at|for|with|without|from|"
               rf"that|which|whose|to|and|or|as|than|by|after|before|where|{VERB})\b|[.,;:)]|$)", re.I),
    re.compile(rf"\b(?:is|are|has|have|as|than|not|with|without|of|by|to|from|in) ones?{END}", re.I),
)
IT = re.compile(r"\bit\b", re.I)
ABBREVIATION = re.compile(r"(?:^|[\s(])(?:e\.g|i\.e|cf|vs|etc|al|Fig|Figs|Sec|No|approx)\.$")
ITEM = re.compile(r"(?:[-*+]|\d+\.)\s+")


def page_units(text):
    """Yields (line, text) of each paragraph, list item and table cell."""
    text = re.sub(r"<!--.*?-->", lambda found: "\n" * found.group().count("\n"), text, flags=re.S)
    unit, start, fenced, previous = [], 0, False, ""
    for number, line in enumerate(text.split("\n") + [""], 1):
        bare = line.strip()
        if bare.startswith("```"):
            fenced, bare = not fenced, ""
        elif fenced:
            bare = ""
        elif not unit and line.startswith("    ") and not ITEM.match(previous):
            continue  # code: indented, after an empty line
        if bare.startswith("|"):
            yield from ((number, cell.strip()) for cell in re.split(r"(?<!\\)\|", bare))
            bare = ""
        item = ITEM.match(bare)
        if unit and (not bare or item or bare.startswith("#")):
            yield start, " ".join(unit)
            unit = []
        if bare and not bare.startswith(("#", "![", ">")):
            start = start if unit else number
            unit.append(bare[item.end():] if item else bare)
        previous = bare or previous


def comment_units(text):
    """Yields (line, text) of each paragraph of a comment of //; a comment beside code is one of its own."""
    unit, start, last, column = [], 0, -9, 0
    for found in [*tree.TOKEN.finditer(text), None]:
        if found is not None and found.lastgroup != "comment":
            continue
        number, code, at, body = -9, True, 0, ""
        if found is not None:
            begin = text.rfind("\n", 0, found.start()) + 1
            number, at = text.count("\n", 0, found.start()) + 1, found.start() - begin
            code, body = bool(text[begin:found.start()].strip()), re.sub(r"^/[/*]|\*/$", "", found.group())
        bare = body.strip()
        drawn = not bare or bool(re.search(r"\S\s{3,}\S", body)) or bare.startswith(("clang-", "NOLINT", "|"))
        item = ITEM.match(bare)
        if unit and (number != last + 1 or at != column or code or drawn or item):
            yield start, " ".join(unit)
            unit = []
        if not drawn:
            start = start if unit else number
            unit.append(bare[item.end():] if item else bare)
        last, column = number, at


def sentences(unit):
    unit = re.sub(r"``.*?``|`[^`]*`|\"[^\"]*\"", "CODE", unit)
    unit = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", unit)
    unit = re.sub(r"\*\*|(?<!\w)\*(?=\w)|(?<=\w)\*(?!\w)", "", unit)
    first = 0
    for end in re.finditer(r"(?<![.\s])[.!?:]+[\"')\]]*(?=\s+[A-Z])|(?<![.\s])[.!?]+[\"')\]]*(?=\s+\S)", unit):
        piece = unit[first:end.end()]
        if not ABBREVIATION.search(piece) and not piece.endswith("..."):
            yield piece.strip()
            first = end.end()
    yield unit[first:].strip()


def pronouns(sentence):
    """The pronouns of the sentence that point back."""
    found = {place.end(): place.group().strip(" ,;:(") for pattern in POINTS_BACK for place in pattern.finditer(sentence)}
    it = IT.search(sentence)
    return [found[end] for end in sorted(found)] + IT.findall(sentence)[:2]


def find(root, file):
    text = tree.read(root, file)
    for line, unit in page_units(text) if file.endswith(".md") else comment_units(text):
        for sentence in sentences(unit):
            if BEGINNING.match(sentence):
                yield f"{file}:{line}: begins with '{BEGINNING.match(sentence).group()}': {sentence}"
            elif len(many := pronouns(sentence)) > MAX_PRONOUNS:
                yield f"{file}:{line}: points back by {', '.join(many)}: {sentence}"


def main(root):
    files = [file for file in tree.files(root, ".md", ".h", ".cc", ".c") if not file.startswith(PRINTED) and "/subprojects/" not in file]
    print(f"{len(files)} pages and sources")
    return tree.report([finding for file in files for finding in find(root, file)],
                       "begin with the subject, and name the noun in place of the pronoun")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
