"""Reading the pages that commands of this folder write."""
import re


def tables(text):
    """The page's rows, as cells, by title."""
    found = {}
    for section in re.split(r"^## ", text, flags=re.M)[1:]:
        title, *lines = section.splitlines()
        rows = [line[2:-2].split(" | ") for line in lines if line.startswith("| ")]
        found[title] = rows[2:]  # without the names of the columns and the line below them
    return found
