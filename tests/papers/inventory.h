#pragma once
// Every algorithm, theorem, equation, table, figure and section of the five papers, and what
// answers it: rows of papers.csv, algorithms of this library, or a reason.

#include <string>
#include <vector>

#include "tests/papers/item.h"

namespace espalier::papers {

// The faults of the list: a subject that neither a row, nor an algorithm, nor a reason answers; a
// row of no subject; an algorithm that this library does not have; an unknown method. A line each.
[[nodiscard]] std::vector<std::string> faults(const Chapter& chapter);

// Returns the chapter's subjects as lines of subjects.csv: the paper, the subject, what it is, its
// algorithms, the number of its rows by kind of method, and the reason why it has none.
[[nodiscard]] std::string subject_lines(const Chapter& chapter);

}  // namespace espalier::papers
