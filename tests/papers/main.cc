// Every table, figure, theorem and worked example of the papers: printed, and with --write DIR
// written into DIR as CSV files, of which page.py makes docs/results/papers.md, and as plots. Exit
// status 1 if any of ours is wrong.

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "tests/csv_line.h"
#include "tests/papers/inventory.h"
#include "tests/papers/item.h"

namespace espalier::papers {

std::string fixed(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

namespace {

// The files of the record: name and contents.
std::vector<std::pair<std::string, std::string>> record_of(const std::vector<Chapter>& chapters) {
  std::string items = testing::csv_line(
      {"paper", "where", "what", "printed", "formula", "corrected", "ours", "by", "note"});
  std::string subjects =
      testing::csv_line({"paper", "subject", "what", "algorithms", "schedules", "simulations",
                         "runs", "computed", "not compared", "reason"});
  std::string pictures = testing::csv_line({"paper", "title", "picture", "file"});
  for (const Chapter& chapter : chapters) {
    subjects += subject_lines(chapter);
    for (const Item& item : chapter.items) {
      items += testing::csv_line({chapter.citation, item.where, item.what, item.printed.text,
                                  item.formula, item.corrected, item.ours, item.how, item.note});
    }
    if (chapter.pictures.empty())
      pictures += testing::csv_line({chapter.citation, chapter.title, "", ""});
    for (const Picture& picture : chapter.pictures) {
      pictures += testing::csv_line({chapter.citation, chapter.title, picture.title, picture.file});
    }
  }
  return {{"papers.csv", items}, {"subjects.csv", subjects}, {"pictures.csv", pictures}};
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
    std::filesystem::create_directories(where);
    bool written = true;
    for (const auto& [name, contents] : record_of(chapters)) {
      written = write(where + name, contents) && written;
    }
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
