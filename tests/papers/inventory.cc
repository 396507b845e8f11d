#include "tests/papers/inventory.h"

#include <algorithm>
#include <array>
#include <span>

#include "espalier/collectives/algorithms/algorithms.h"
#include "espalier/collectives/search.h"
#include "tests/csv_line.h"

namespace espalier::papers {
namespace {

enum Kind : std::uint8_t { kSchedules, kSimulations, kRuns, kComputed, kNotCompared, kKinds };

constexpr struct Method {
  const char* name;
  Kind kind;
} kMethods[] = {{kProven, kSchedules},
                {kSimulated, kSimulations},
                {kRun, kRuns},
                {"simulation with queues", kSimulations},
                {"message by message", kSimulations},
                {kClosed, kComputed},
                {"recurrence", kComputed},
                {"the trees themselves", kComputed},
                {"trying all s", kComputed},
                {"trying all k", kComputed},
                {"least over N", kComputed},
                {"search", kComputed},
                {"Fig. 3, corrected", kComputed},
                {"-", kNotCompared}};

struct Subject {
  const char* where;  // as in the rows: "Theorem 3"
  const char* what;
  // "broadcast fractional, reduce fractional": the algorithms that answer it. Empty: rows alone
  // answer it.
  const char* algorithms = "";
  const char* reason = "";  // if nothing else answers it
};

constexpr char kDrawing[] = "a drawing of what the text defines; it has no numbers";

constexpr Subject kFractionalTrees[] = {
    {"introduction", "what the abstract and section 1 claim"},
    {"equation 1", "order of a chain's time"},
    {"equation 2", "order of a binary tree's time"},
    {"equation 3", "order of a fractional tree's time"},
    {"equation 4", "lower bound, duplex ports"},
    {"equation 5", "lower bound, simplex ports"},
    {"before equation 6", "lower bound for s packets, in steps"},
    {"equation 6", "lower bound for s packets, in time"},
    {"section 2", "pipelined chain and binary tree",
     "broadcast chain, reduce chain, broadcast binary, reduce binary"},
    {"Fig. 1", "fractional trees for r = 1, 2, 3 and a chain"},
    {"Fig. 2", "program of a fractional tree", "broadcast fractional, reduce fractional"},
    {"section 3", "fractional trees: depth, best r, examples, the direct simplex version",
     "broadcast fractional-direct, reduce fractional-direct, broadcast fractional-simplex, reduce "
     "fractional-simplex"},
    {"equation 7", "time of a fractional tree for r and s"},
    {"equation 8", "time with the best s"},
    {"Fig. 3", "gain of a fractional tree over chain and binary tree"},
    {"section 4", "hierarchies of crossbars, meshes",
     "broadcast crossbar-a, broadcast crossbar-b, broadcast fractional-mesh, reduce crossbar-a, "
     "reduce crossbar-b, reduce fractional-mesh"},
    {"Fig. 4", "fractional tree on an 8 x 16 mesh, XY routing"},
};

constexpr Subject kTwoTrees[] = {
    {"[SST09] section 2", "previous algorithms",
     "broadcast binomial, broadcast scatter-allgather, broadcast circulant, broadcast binary, "
     "broadcast chain"},
    {"[SST09] equation 1", "time of a pipelined binary tree"},
    {"[SST09] section 3", "the two trees, by shifting and by mirroring"},
    {"[SST09] Fig. 1", "colourings for 6, 8, 10 and 12 PEs"},
    {"[SST09] Lemma 1", "two colours are enough"},
    {"[SST09] Fig. 2", "data flow of a PE", "", kDrawing},
    {"[SST09] section 4.1", "broadcast", "broadcast two-tree, broadcast two-tree-mirror"},
    {"[SST09] equation 2", "time of a broadcast"},
    {"[SST09] section 4.2", "reduction", "reduce two-tree, reduce two-tree-mirror"},
    {"[SST09] section 4.3", "scan",
     "scan two-tree, exscan two-tree, scan two-tree-mirror, exscan two-tree-mirror"},
    {"[SST09] section 5.1", "colour of an edge without communication", "",
     "its rows are those of Theorem 2 and Fig. 3"},
    {"[SST09] Theorem 2", "O(log p) for the colours of a node"},
    {"[SST09] Fig. 3", "inEdgeColor"},
    {"[SST09] section 5.2", "simplex ports, by couples",
     "broadcast two-tree-simplex, reduce two-tree-simplex, scan two-tree-simplex, exscan "
     "two-tree-simplex"},
    {"[SST09] Fig. 4", "data flow of a scan, duplex and simplex", "", kDrawing},
    {"[SST09] section 6.1", "baselines of the broadcast",
     "broadcast circulant, broadcast scatter-allgather, broadcast binomial, broadcast binary, "
     "broadcast chain"},
    {"[SST09] Fig. 5", "bandwidth of broadcasts, 28 nodes"},
    {"[SST09] Fig. 6", "bandwidth of broadcasts, 150 nodes"},
    {"[SST09] section 6.2", "baselines of the reduction",
     "reduce rabenseifner, reduce binomial, reduce binary, reduce chain"},
    {"[SST09] Fig. 7", "bandwidth of reductions, 28 nodes"},
    {"[SST09] Fig. 8", "bandwidth of reductions, 150 nodes"},
    {"[SST09] section 6.3", "baselines of the scan",
     "scan recursive-doubling, scan doubly-pipelined, scan chain"},
    {"[SST09] Fig. 9", "bandwidth of scans, 27 nodes"},
    {"[SST09] Table 1", "time of planning a circulant broadcast"},
    {"[SST09] section 6.4", "time of colouring"},
    {"[SST09] section 7", "two Fibonacci trees",
     "broadcast double-fibonacci, reduce double-fibonacci"},
    {"[SST09] section A.1", "the auxiliary graph: two paths and cycles"},
    {"[SST09] Lemma 3", "there are no cycles"},
    {"[SST09] Lemma 4", "the order along the path gives the colours"},
    {"[SST09] Table A.1", "colours in the four cases"},
    {"[SST09] Figs. A.1 to A.3", "parts of the proof", "", kDrawing},
    {"[SST07] section 2", "the two trees, times, lower bound"},
    {"[SST07] Fig. 1", "the two trees for 10 processors, with colours"},
    {"[SST07] Lemma 1", "two colours are enough", "", "the same as [SST09] Lemma 1"},
    {"[SST07] Theorem 1", "time of a reduction", "reduce two-tree"},
    {"[SST07] section 2.3", "scan, steps", "scan two-tree"},
    {"[SST07] Theorem 2", "time of a scan", "scan two-tree"},
    {"[SST07] Fig. 2", "bandwidth of broadcasts, 28 nodes", "", "the same as [SST09] Fig. 5"},
    {"[SST07] Fig. 3", "bandwidth of broadcasts, 150 nodes", "", "the same as [SST09] Fig. 6"},
    {"[SST07] Fig. 4", "bandwidth of reductions, 28 nodes", "", "the same as [SST09] Fig. 7"},
    {"[SST07] Fig. 5", "bandwidth of reductions, 150 nodes"},
    {"[SST07] Table 1", "time of planning"},
    {"[SST07] appendix", "inEdgeColor", "", "the same as [SST09] Fig. 3"},
};

constexpr Subject kLeafCommunications[] = {
    {"equation 1", "broadcast from a router to the leaves below it"},
    {"section 2.1", "broadcast, single-port; of several packets", "broadcast leaf"},
    {"Fig. 1", "broadcast, single-port", "broadcast leaf"},
    {"Theorem 1", "steps of a broadcast, single-port", "broadcast leaf"},
    {"section 2.2", "lower bound of scatter and gather", "",
     "Theorem 2's rows are compared with it"},
    {"Theorem 2", "furthest first is optimal", "scatter leaf, gather leaf"},
    {"Theorems 3 and 4", "steps of a multinode broadcast, single-port: at least, and by Fig. 2",
     "allgather leaf-single"},
    {"Fig. 2", "multinode broadcast, single-port", "allgather leaf-single"},
    {"Theorems 5 and 6", "steps of a total exchange, single-port: at least, and by Fig. 3",
     "all-to-all leaf-single"},
    {"Fig. 3", "total exchange, single-port", "all-to-all leaf-single"},
    {"section 3.1", "broadcast, scatter and gather, multiport",
     "broadcast leaf-multiport, scatter leaf, gather leaf"},
    {"section 3.2", "multinode broadcast without queues, multiport", "allgather leaf"},
    {"Theorem 7", "flooding takes the lower bound", "allgather leaf-flood"},
    {"section 3.3", "total exchange, phase after phase", "all-to-all leaf-serial"},
    {"Fig. 4", "total exchange without contention", "all-to-all leaf-serial, all-to-all leaf"},
    {"equation 2", "steps of the pipelined total exchange", "all-to-all leaf"},
    {"Theorem 8", "steps of a total exchange, exponential capacities, at least"},
    {"section 4", "levels of different arity; open questions"},
};

constexpr Subject kPostalModel[] = {
    {"section 1", "gains of 20 % and of 10 %", "", "the rows of Figs. 13 and 14"},
    {"section 2.1", "N_lambda(t)"},
    {"Fig. 1a", "binomial tree, n = 8, one-port", "broadcast binomial"},
    {"Fig. 1b", "binomial tree, n = 8, lambda = 2", "broadcast knomial"},
    {"Fig. 2", "lambda-tree, n = 8, lambda = 2", "broadcast lambda-tree"},
    {"section 2.2", "two experiments that measure lambda"},
    {"Fig. 3", "lambda by message size"},
    {"Fig. 4", "send and receive times by message size"},
    {"Fig. 5", "lambda with blocking and nonblocking sends"},
    {"section 2.3", "the lambda-tree, built greedily", "broadcast lambda-tree"},
    {"section 2.4", "the split by alpha, and by a look-up table",
     "broadcast alpha-tree, broadcast alpha-table"},
    {"Fig. 6", "optimal alpha by n, lambda = 2"},
    {"Fig. 7", "optimal alpha by n, lambda = 1.95"},
    {"Fig. 8", "optimal alpha for large n"},
    {"Fig. 9", "entries of the look-up table"},
    {"section 2.5", "positions of the triangles; lambda = 1.8"},
    {"section 2.6", "congestion-free lists on meshes"},
    {"Fig. 10", "broadcast time by alpha, 16 KiB, 8 x 8 mesh"},
    {"Fig. 11", "broadcast time by alpha, 512 B, 8 x 8 mesh"},
    {"Fig. 12", "predicted broadcast time by alpha"},
    {"Fig. 13", "measured broadcast time by alpha"},
    {"Fig. 14", "with and without congestion"},
    {"section 4", "gain of more than 20 %"},
    {"section 3", "global combine: two approaches, break-even", "allreduce combine"},
    {"section 3.1", "global combine for an integer lambda", "allreduce combine"},
    {"Fig. 15", "delay-receive, lambda = 2.5"},
    {"Fig. 16", "delay-send, lambda = 2.5"},
    {"Table 1", "growth of N_lambda"},
    {"Table 2", "break-even lambda"},
    {"Fig. 17", "growth of N_lambda", "", "bruck96-fig17.svg; its numbers are those of Table 1"},
    {"Fig. 18", "break-even lambda", "", "bruck96-fig18.svg; its numbers are those of Table 2"},
};

// [Traff24] is no paper of the five: its rows need no list.
std::span<const Subject> subjects_of(const Chapter& chapter) {
  if (chapter.citation == "[Sanders03]") return kFractionalTrees;
  if (chapter.citation == "[SST09] and [SST07]") return kTwoTrees;
  if (chapter.citation == "[DD96]") return kLeafCommunications;
  if (chapter.citation == "[Bruck96]") return kPostalModel;
  return {};
}

const Method* method_of(const Item& item) {
  const auto* found = std::find_if(std::begin(kMethods), std::end(kMethods),
                                   [&](const Method& one) { return item.how == one.name; });
  return found == std::end(kMethods) ? nullptr : found;
}

std::array<int, kKinds> rows_of(const Chapter& chapter, const Subject& subject) {
  std::array<int, kKinds> rows = {};
  for (const Item& item : chapter.items) {
    const Method* method = method_of(item);
    if (method != nullptr && item.where == subject.where) ++rows[method->kind];
  }
  return rows;
}

// Whether this library has every one of "broadcast chain, reduce chain"; else the first it has not.
std::string missing_algorithm(std::string_view list) {
  while (!list.empty()) {
    const std::string one(list.substr(0, list.find(", ")));
    list.remove_prefix(std::min(list.size(), one.size() + 2));
    const std::size_t space = one.find(' ');
    const std::string name = one.substr(space + 1);
    Collective collective = Collective::kBroadcast;
    if (!parse_collective(one.substr(0, space).c_str(), collective) ||
        (find_algorithm(collective, name.c_str()) == nullptr &&
         searched::find_searched(collective, name) == nullptr)) {
      return one;
    }
  }
  return "";
}

}  // namespace

std::vector<std::string> faults(const Chapter& chapter) {
  std::vector<std::string> found;
  const std::span<const Subject> subjects = subjects_of(chapter);
  const std::string chapter_name = chapter.citation + ": ";
  for (const Subject& subject : subjects) {
    const auto rows = rows_of(chapter, subject);
    const bool has_rows = std::any_of(rows.begin(), rows.end(), [](int n) { return n > 0; });
    const std::string_view list = subject.algorithms;
    if (!has_rows && list.empty() && *subject.reason == '\0') {
      found.push_back(chapter_name + subject.where + " has neither a row nor a reason");
    }
    const std::string missing = missing_algorithm(list);
    if (!missing.empty()) {
      found.push_back(chapter_name + subject.where + " is said to be '" + missing +
                      "', which is no algorithm");
    }
  }
  for (const Item& item : chapter.items) {
    const bool listed = subjects.empty() ||
                        std::any_of(subjects.begin(), subjects.end(), [&](const Subject& subject) {
                          return item.where == subject.where;
                        });
    const std::string name = chapter_name + item.where + ", " + item.what;
    if (!listed) found.push_back(name + ": of no subject in tests/papers/inventory.cc");
    if (method_of(item) == nullptr) found.push_back(name + ": unknown method '" + item.how + "'");
    if (item.how == std::string("-") && item.note.empty()) {
      found.push_back(name + ": not compared, without a reason");
    }
  }
  return found;
}

std::string subject_lines(const Chapter& chapter) {
  std::string out;
  for (const Subject& subject : subjects_of(chapter)) {
    const std::array<int, kKinds> rows = rows_of(chapter, subject);
    out += testing::csv_line({chapter.citation, subject.where, subject.what, subject.algorithms,
                              std::to_string(rows[kSchedules]), std::to_string(rows[kSimulations]),
                              std::to_string(rows[kRuns]), std::to_string(rows[kComputed]),
                              std::to_string(rows[kNotCompared]), subject.reason});
  }
  return out;
}

}  // namespace espalier::papers
