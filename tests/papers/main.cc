// Every table, figure, theorem and worked example of the papers: printed, and with --write DIR
// written as DIR/papers.md with the plots beside it. Exit status 1 if any of ours is wrong.

#include <cstdio>
#include <cstring>
#include <fstream>

#include "tests/papers/inventory.h"
#include "tests/papers/item.h"

namespace espalier::papers {

std::string fixed(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

namespace {

std::string markdown(const std::vector<Chapter>& chapters) {
  std::string out =
      "# What the papers print, and what this library gets\n\n"
      "Written by `build/tests/papers/papers --write docs/results`; a test compares this page with "
      "what that command writes.\n\nA first table of each paper lists its algorithms, theorems, "
      "equations, tables and figures: the algorithms of `espalier list` that implement it, and how "
      "many rows of the second table are verified schedules, simulations, runs, or computed.\n"
      "\"verified schedule\": the steps of the programs that nodes run, after the verifier "
      "accepted "
      "them.\n\"printed\" is what stands in the paper's text, \"formula\" what its formula or rule "
      "gives for these numbers.\n\"corrected\" stands where the paper's number is wrong, a bound, "
      "or "
      "missing; the note says why.\nA sentence about a figure is \"true\" or \"not here\".\n";
  for (const Chapter& chapter : chapters) {
    out += "\n## " + chapter.citation + ": " + chapter.title + "\n\n";
    for (const Picture& picture : chapter.pictures) {
      out += "![" + picture.title + "](" + picture.file + ")\n\n";
    }
    out += subject_table(chapter);
    out +=
        "| where | what | printed | formula | corrected | ours | by | note "
        "|\n|---|---|---|---|---|---|---|---|\n";
    for (const Item& item : chapter.items) {
      out += "| " + item.where + " | " + item.what + " | " + item.printed.text + " | " +
             item.formula + " | " + item.corrected + " | " + item.ours + " | " + item.how + " | " +
             item.note + " |\n";
    }
  }
  return out;
}

bool write(const std::string& file, const std::string& text) {
  std::ofstream out(file, std::ios::binary);
  out << text;
  out.close();
  if (out) return true;
  std::fprintf(stderr, "papers: cannot write %s\n", file.c_str());
  return false;
}

int run(const char* directory) {
  const std::vector<Chapter> chapters = {fractional_trees(), two_trees(), leaf_communications(),
                                         postal_model(), circulant_graphs()};
  int wrong = 0, items = 0;
  for (const Chapter& chapter : chapters) {
    for (const std::string& fault : faults(chapter)) {
      ++wrong;
      std::printf("WRONG %s\n", fault.c_str());
    }
    for (const Item& item : chapter.items) {
      ++items;
      if (!item.right()) ++wrong;
      std::printf("%s %s %s: printed %s, formula %s, corrected %s, ours %s\n",
                  item.measured  ? "-    "
                  : item.right() ? "ok   "
                                 : "WRONG",
                  chapter.citation.c_str(), (item.where + ", " + item.what).c_str(),
                  item.printed.text, item.formula.empty() ? "-" : item.formula.c_str(),
                  item.corrected.empty() ? "-" : item.corrected.c_str(), item.ours.c_str());
    }
  }
  std::printf("%d items, %d wrong\n", items, wrong);
  if (directory != nullptr) {
    const std::string where = std::string(directory) + "/";
    bool written = write(where + "papers.md", markdown(chapters));
    for (const Chapter& chapter : chapters) {
      for (const Picture& picture : chapter.pictures) {
        written = write(where + picture.file, picture.svg) && written;
      }
    }
    if (!written) return 2;
  }
  return wrong == 0 ? 0 : 1;
}

}  // namespace
}  // namespace espalier::papers

int main(int argc, char** argv) {
  if (argc == 1) return espalier::papers::run(nullptr);
  if (argc == 3 && std::strcmp(argv[1], "--write") == 0) return espalier::papers::run(argv[2]);
  std::fprintf(stderr, "usage: papers [--write DIR]\n");
  return 2;
}
