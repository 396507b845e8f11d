#!/usr/bin/python3
"""newcomer_test.py TOUR QUESTIONS GLOSSARY DECISIONS: each walk of the tour has at most so many hand-overs, numbered in order, each with
a reference; the first has twelve stops; twenty questions have one reference at least; each term of the glossary is there once, in alphabetical order;
each decision has its four sections and stands in the index."""
import pathlib
import re
import sys

REFERENCE = r"`[\w./-]+\.\w+:[A-Za-z_][\w:.]*`"
tour, questions, glossary, decisions = map(pathlib.Path, sys.argv[1:])
bad = []

# The most hand-overs of each walk.
WALKS = {"One block, from file to file": 15, "A call, to the wire": 10, "A specification, to a file": 10,
         "An image, from flash to the machine": 8}
walks = dict(section.split("\n", 1) for section in re.split(r"^## ", tour.read_text(), flags=re.M)[1:])
if list(walks) != list(WALKS):
    bad.append(f"the tour's walks are {', '.join(walks)}; expected {', '.join(WALKS)}")
lengths = []
for walk, most in WALKS.items():
    hand_overs = [int(number) for number in re.findall(rf"\((\d+)\)\s+(?={REFERENCE})", walks.get(walk, ""))]
    lengths.append(str(len(hand_overs)))
    if hand_overs != list(range(1, len(hand_overs) + 1)) or not 1 <= len(hand_overs) <= most:
        bad.append(f"the hand-overs of '{walk}' are {hand_overs}, expected at most {most}, in order, each before a reference")
stops = re.split(r"^### Stop (\d+): .*$", walks.get("One block, from file to file", ""), flags=re.M)
if [int(number) for number in stops[1::2]] != list(range(1, 13)):
    bad.append(f"the tour's stops are {', '.join(stops[1::2])}, not 1 to 12")
bad += [f"stop {number} names no function" for number, text in zip(stops[1::2], stops[2::2]) if not re.search(REFERENCE, text)]

asked = re.split(r"^### (\d+)\. .*\?$", questions.read_text(), flags=re.M)
if [int(number) for number in asked[1::2]] != list(range(1, 21)):
    bad.append(f"the questions are {', '.join(asked[1::2])}, not 1 to 20")
bad += [f"question {number} is answered by no function" for number, text in zip(asked[1::2], asked[2::2])
        if not re.search(REFERENCE, text)]

terms = re.findall(r"^\| \*\*([^*|]+)\*\*", glossary.read_text(), re.M)
by_section = [re.findall(r"^\| \*\*([^*|]+)\*\*", section, re.M) for section in re.split(r"^## ", glossary.read_text(), flags=re.M)]
for section in by_section:
    if section != sorted(section, key=str.lower):
        first = next(a for a, b in zip(section, sorted(section, key=str.lower)) if a != b)
        bad.append(f"the glossary is out of order at '{first}'")
bad += [f"'{term}' is {terms.count(term)} times in the glossary" for term in sorted({t for t in terms if terms.count(t) > 1})]
if len(terms) < 60:
    bad.append(f"{len(terms)} terms found in the glossary; this test reads it wrongly")

index = (decisions / "README.md").read_text()
pages = sorted(page for page in decisions.glob("*.md") if page.name != "README.md")
for page in pages:
    sections = re.findall(r"^## (.+)$", page.read_text(), re.M)
    if sections != ["Context", "Decision", "Alternatives", "Consequences"]:
        bad.append(f"{page.name}: its sections are {', '.join(sections)}; expected Context, Decision, Alternatives, Consequences")
    if f"({page.name})" not in index:
        bad.append(f"{page.name} is not in the index")
if len(pages) < 10:
    bad.append(f"{len(pages)} decisions, expected ten at least")

print("\n".join(bad) or f"12 stops, {' + '.join(lengths)} hand-overs, 20 questions, {len(terms)} terms, {len(pages)} decisions")
sys.exit(1 if bad else 0)
