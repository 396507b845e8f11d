// `espalier embed`, and --embedding, from outside.

#include <fcntl.h>
#include <sys/stat.h>

#include <cstdlib>
#include <utility>

#include "tools/commands/testing/command_fixture.h"

namespace espalier {
namespace {

using EmbedCommand = Command;

constexpr char kBroadcast[] = " --collective broadcast --algorithm two-tree ";

// The same seed gives the same file; and the command that the file records gives it again.
TEST_F(EmbedCommand, FindsTheSameAgain) {
  const std::string command = std::string("embed --topology mesh:4x4") + kBroadcast + "--root 5 ";
  ASSERT_EQ(run(command + "-o a.textproto").status, 0);
  ASSERT_EQ(run(command + "--seed 1 -o b.textproto").status, 0);
  ASSERT_EQ(run(command + "--seed 2 -o c.textproto").status, 0);
  const std::string text = read(directory_ / "a.textproto");
  EXPECT_EQ(text, read(directory_ / "b.textproto"));
  EXPECT_NE(text, read(directory_ / "c.textproto"));
  const std::string said = "found_by: \"espalier ";
  const std::size_t begin = text.find(said) + said.size();
  ASSERT_EQ(run(text.substr(begin, text.find('"', begin) - begin) + " -o d.textproto").status, 0);
  EXPECT_EQ(text, read(directory_ / "d.textproto"));
  compile("s", "mesh:4x4", "broadcast", "two-tree", "--root 5 --embedding a.textproto");
  EXPECT_EQ(run("verify s --loads").status, 0);
  EXPECT_EQ(run("simulate s --bytes 4096").status, 0);
}

TEST_F(EmbedCommand, FindsGroupsAndLoadsOfAPeriod) {
  const auto groups = json_of(
      "embed --topology mesh:4x4 --collective broadcast --algorithm fractional-mesh --group 1x2 "
      "--tree h-tree --root 3 -o f.textproto");
  EXPECT_EQ(groups["root"], 3);
  compile("f", "mesh:4x4", "broadcast", "fractional-mesh", "--root 3 --embedding f.textproto");
  EXPECT_EQ(run("verify f --loads").status, 0);
  const auto reduce = json_of(
      "embed --topology mesh:2x6 --collective reduce --algorithm fractional-mesh --group 1x2 "
      "--root 6 -o r.textproto");
  EXPECT_EQ(reduce["root"], 6);
  compile("r", "mesh:2x6", "reduce", "fractional-mesh", "--root 6 --embedding r.textproto");
  EXPECT_EQ(run("verify r --loads").status, 0);
  expect_refused(
      "compile -o b --topology mesh:2x6 --collective broadcast --algorithm "
      "fractional-mesh --root 6 --embedding r.textproto",
      "reduce by fractional-mesh; expected one for broadcast by fractional-mesh");
  const std::string stored =
      "embed --topology mesh:2x3 --collective reduce --algorithm two-tree --switching "
      "store-and-forward "
      "--moves 20000 ";
  ASSERT_EQ(run(stored + "-o g.textproto").status, 0);
  compile("g", "mesh:2x3", "reduce", "two-tree", "--embedding g.textproto --links hop-by-hop");
  EXPECT_EQ(run("verify g --loads").status, 0);
  expect_refused(stored + "--period 1 -o h.textproto", "too many on links that carry 1 a period",
                 1);
}

TEST_F(EmbedCommand, TheBestKnownIsTheDefault) {
  compile("known", "mesh:8x8");
  compile("none", "mesh:8x8", "broadcast", "two-tree", "--embedding none");
  compile("named", "mesh:8x8", "broadcast", "two-tree", "--embedding mesh-8x8-broadcast-two-tree");
  EXPECT_EQ(read(directory_ / "known"), read(directory_ / "named"));
  EXPECT_NE(read(directory_ / "known"), read(directory_ / "none"));
  EXPECT_EQ(run("verify known --loads").status, 0);
  EXPECT_EQ(run("verify none --loads").status, 1);
  compile("snake", "mesh:3x4", "broadcast", "chain", "--root 7 --embedding snake");
  EXPECT_EQ(run("verify snake --loads").status, 0);
  const auto list = json_of("list --embeddings");
  EXPECT_FALSE(list.empty());
  for (const auto& row : list)
    EXPECT_EQ(std::string(row["found_by"]).rfind("espalier embed ", 0), 0u);
}

// Three meshes that no other test names, from all corners.
TEST_F(EmbedCommand, KnowsEveryMesh) {
  for (const char* mesh : {"mesh:6x6", "mesh:3x10", "mesh:12x12"}) {
    for (const char* algorithm : {"two-tree", "double-fibonacci", "fractional"}) {
      const bool has_runs = std::string(algorithm) == "fractional";
      compile("s", mesh, "broadcast", algorithm, has_runs ? "--run-length own" : "");
      EXPECT_EQ(run("verify s --loads").status, 0) << mesh << " " << algorithm;
    }
  }
  compile("s", "mesh:5x7", "reduce", "two-tree", "--root 34");
  EXPECT_EQ(run("verify s --loads").status, 0);
}

TEST_F(EmbedCommand, RefusesInOneLine) {
  const std::string embed = "embed -o e.textproto --topology ";
  for (const auto& [arguments, words] :
       {std::pair{"mesh:4x4 --collective scan --algorithm two-tree", "a scan goes by the order"},
        {"mesh:4x4 --collective allgather --algorithm ring", "each part belongs to a rank"},
        {"mesh:64x64 --collective broadcast --algorithm two-tree", "expected at most 1024"},
        {"mesh:4x4 --collective broadcast --algorithm two-tree --switching wormhole",
         "unknown --switching"},
        {"mesh:4x4 --collective broadcast --algorithm two-tree --root 16", "--root on mesh:4x4"},
        {"mesh:4x4 --collective broadcast --algorithm two-tree --period 2", "store-and-forward"},
        {"mesh:4x4 --collective broadcast --algorithm two-tree --group 1x2",
         "fractional-mesh alone"},
        {"mesh:4x4 --collective broadcast --algorithm fractional-mesh --group 3x2",
         "do not divide"},
        {"mesh:4x4 --collective broadcast --algorithm fractional-mesh --group two", "expected RxC"},
        {"mesh:4x4 --collective broadcast --algorithm fractional", "expected --run-length"},
        {"mesh:4x4 --collective broadcast --algorithm two-tree --budget 1h",
         "--budget (seconds, e.g. 60s): '1h' is not a whole number from 1"},
        {"mesh:4x4 --collective allreduce --algorithm fractional-mesh --group 1x2",
         "is a broadcast or reduce whose runs"},
        {"complete:4 --collective reduce --algorithm fractional-mesh --group 1x2", "for mesh:RxC"},
        {"complete:4 --collective broadcast --algorithm fractional-mesh --group 1x2",
         "for mesh:RxC"},
        {"mesh:3x4 --collective broadcast --algorithm fractional-mesh --group 1x2 --tree h-tree",
         "expected a power of two"}}) {
    expect_refused(embed + arguments, words);
  }
  // With so few moves there is none; in a row there is none at all.
  expect_refused(embed + "mesh:8x8" + kBroadcast + "--moves 10", "none found in 10 moves", 1);
  expect_refused(embed + "mesh:1x9" + kBroadcast, "none exists on mesh:1x9 for this root", 1);
  // Moves for years.
  expect_refused(embed + "mesh:4x4" + kBroadcast +
                     "--switching store-and-forward --moves 100000000000 --budget 1s",
                 "the 100000000000 moves take more than 1 s", 1);
}

// Without --algorithm, all candidates take the embedding.
TEST_F(EmbedCommand, AChoiceReadsAPipeOnce) {
  ASSERT_EQ(run(std::string("embed --topology mesh:2x3") + kBroadcast + "-o e.textproto").status,
            0);
  const std::string pipe = (directory_ / "pipe.textproto").string();
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  // A process: the commands run in forked children, for which a thread could hold locks.
  const std::string writer =
      "cat " + (directory_ / "e.textproto").string() + " >" + pipe + " 2>/dev/null &";
  ASSERT_EQ(std::system(writer.c_str()), 0);
  const CommandResult verified =
      run("verify --topology mesh:2x3 --collective broadcast --embedding pipe.textproto");
  // So that the writer ends if the command did not open the pipe.
  close(open(pipe.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  EXPECT_EQ(verified.status, 0) << verified.err;
}

TEST_F(EmbedCommand, RefusesWrongEmbeddings) {
  ASSERT_EQ(run(std::string("embed --topology mesh:2x3") + kBroadcast + "-o e.textproto").status,
            0);
  write(directory_ / "bad.textproto", "topology: \"mesh:2x3\"\nrow: 1\n");
  const std::string compile = "compile -o s --collective broadcast ";
  for (const auto& [arguments, words] :
       {std::pair{"--topology mesh:3x2 --algorithm two-tree --embedding e.textproto",
                  "is for topology mesh:2x3; expected one for mesh:3x2"},
        {"--topology mesh:2x3 --algorithm chain --embedding e.textproto",
         "is for broadcast by two-tree; expected one for broadcast by chain"},
        {"--topology mesh:2x3 --algorithm two-tree --root 1 --embedding e.textproto",
         "is for root 0; expected --root 0"},
        {"--topology mesh:2x3 --algorithm two-tree --embedding bad.textproto", "bad.textproto:2: "},
        {"--topology mesh:2x3 --algorithm two-tree --embedding no.textproto", "cannot read"},
        {"--topology mesh:2x3 --algorithm two-tree --embedding oak", "unknown embedding 'oak'"},
        {"--topology complete:6 --algorithm chain --embedding snake", "no snake on complete:6"},
        {"--topology mesh:2x3 --algorithm chain --embedding z-order",
         "no z-order on mesh:2x3; expected a mesh whose numbers of rows and of columns are powers"},
        {"--topology mesh:2x3 --algorithm fractional-mesh", "no embedding is known for root 0"}}) {
    expect_refused(compile + arguments, words);
  }
  expect_refused(
      "compile -o s --topology mesh:2x2 --collective allgather --algorithm ring "
      "--embedding snake",
      "takes no embedding: each part belongs to a rank");
}

}  // namespace
}  // namespace espalier
