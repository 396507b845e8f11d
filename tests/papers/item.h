#pragma once
// What the papers print, beside what this library gets: one Item a number (or a row of numbers) of
// a table, figure, theorem or worked example. docs/results/papers.md is made of them.

#include <string>
#include <vector>

namespace espalier::papers {

struct Item {
  std::string where;      // "Theorem 3", "Fig. 3", "equation 7"
  std::string what;       // "multinode broadcast, single-port, steps, k=3, n=9"
  std::string printed;    // the paper's value
  std::string corrected;  // what it must be, where the paper is wrong or gives a bound; else empty
  std::string ours;       // computed here
  std::string how;        // by what it was computed: "verified schedule", "closed form", ...
  std::string note = {};  // why they differ, where they do
  bool measured = false;  // on the authors' machine: there is nothing to reproduce

  // Ours is what the paper prints, or what it must be.
  [[nodiscard]] bool right() const {
    return measured || ours == (corrected.empty() ? printed : corrected);
  }
};

struct Picture {
  std::string file, title, svg;
};

// One paper's.
struct Chapter {
  std::string number, title;  // "002", "Leaf communications in complete trees (...)"
  std::vector<Item> items;
  std::vector<Picture> pictures;
};

[[nodiscard]] Chapter fractional_trees();     // 000
[[nodiscard]] Chapter two_trees();            // 001 and 003
[[nodiscard]] Chapter leaf_communications();  // 002
[[nodiscard]] Chapter postal_model();         // 004

// "1.387", with so many digits after the point.
[[nodiscard]] std::string fixed(double value, int digits);

}  // namespace espalier::papers
