#pragma once
// The papers' numbers, beside this library's results: one Item per number (or row of numbers) of a
// table, figure, theorem or worked example. They are the rows of papers.csv, the record of
// docs/results/papers.md.

#include <string>
#include <vector>

namespace espalier::papers {

// A value quoted from the paper's text, word for word: a literal here, never computed.
struct Printed {
  consteval Printed(const char* words) : text(words) {}
  const char* text;
};
inline constexpr Printed kNothing = "-";

// Methods of computing a value.
inline constexpr char kClosed[] = "closed form";
inline constexpr char kProven[] = "verified schedule";
inline constexpr char kSimulated[] = "simulation";
inline constexpr char kRun[] = "run";

struct Item {
  std::string where;      // "Theorem 3", "Fig. 3", "equation 7"
  std::string what;       // "multinode broadcast, single-port, steps, k=3, n=9"
  Printed printed;        // kNothing: the paper has no such number
  std::string formula;    // the value of the paper's formula, or rule; empty: it has none
  std::string corrected;  // the correct value if the paper is wrong or gives a bound; or empty
  std::string ours;       // computed here
  std::string how;        // the method of computing: "verified schedule", "closed form", ...
  std::string note = {};  // the reason for any difference
  bool measured = false;  // on the authors' machine: there is nothing to reproduce

  // Whether ours equals the expected value: the corrected one if there is one, otherwise the value
  // of the paper's formula, otherwise the printed one. Always true for a measured item.
  [[nodiscard]] bool right() const {
    if (measured) return true;
    if (!corrected.empty()) return ours == corrected;
    return ours == (formula.empty() ? printed.text : formula);
  }
};

struct Picture {
  std::string file, title, svg;
};

// The items and pictures of one paper.
struct Chapter {
  std::string citation, title;  // "[DD96]", "Leaf communications in complete trees (...)"
  std::vector<Item> items;
  std::vector<Picture> pictures;
};

[[nodiscard]] Chapter fractional_trees();     // [Sanders03]
[[nodiscard]] Chapter two_trees();            // [SST09] and [SST07]
[[nodiscard]] Chapter leaf_communications();  // [DD96]
[[nodiscard]] Chapter postal_model();         // [Bruck96]
[[nodiscard]] Chapter circulant_graphs();     // [Traff24]

// Adds the time bounds of [Sanders03], and what it says about them.
void tradeoff(Chapter& chapter);

// Adds [SST09]'s colourings, its lemmas on them, and its times.
void colourings(Chapter& chapter);

// Adds the bandwidths, simulated and of runs, of [SST09], Figs. 5 to 9, and what the papers say
// about them.
void bandwidths(Chapter& chapter);

// Adds [Bruck96]'s greedy tree, triangles and approaches to a combine.
void postal_theory(Chapter& chapter);

// Adds [Bruck96]'s figures of experiments, as simulated runs.
void postal_figures(Chapter& chapter);

// "1.387", with `digits` digits after the point.
[[nodiscard]] std::string fixed(double value, int digits);

}  // namespace espalier::papers
