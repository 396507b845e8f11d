#pragma once
// Every algorithm, theorem, equation, table, figure and section of the five papers, and what
// answers it: rows of docs/results/papers.md, algorithms of this library, or a reason.

#include <string>
#include <vector>

#include "tests/papers/item.h"

namespace espalier::papers {

// The faults of the list: a subject that neither a row, nor an algorithm, nor a reason answers; a
// row of no subject; an algorithm that this library does not have; an unknown method. A line each.
[[nodiscard]] std::vector<std::string> faults(const Chapter& chapter);

// The chapter's subjects as a table, with the number of rows by kind of method.
[[nodiscard]] std::string subject_table(const Chapter& chapter);

}  // namespace espalier::papers
