// The command from outside: exit status, one line on stderr, nothing half written.

#include <utility>

#include "tests/whole.h"
#include "tools/commands/testing/command_fixture.h"

namespace espalier {
namespace {

TEST_F(Command, RefusesWrongUse) {
  expect_refused(
      "", {{"", "no command; see 'espalier --help'"},
           {"frobnicate", "unknown command 'frobnicate'; 'espalier --help' lists the commands"},
           {"simulte", "unknown command 'simulte'; the nearest is 'simulate'"},
           {"image chek", "unknown command 'chek'; the nearest is 'check'; 'espalier image "},
           {"image", "no command; see 'espalier image --help'"},
           {"list --formt json", "unknown option '--formt'; the nearest is '--format'"},
           {"list --format json --format text", "--format is given 2 times; expected it once"},
           {"list --embeddings --embeddings", "--embeddings is given 2 times"},
           {"list --embeddings=no", "--embeddings is a flag; expected no value"},
           {"topology ''", "topology is empty; expected a value"},
           {"--frobnicate", "--frobnicate"},
           {"list --frobnicate", "--frobnicate"},
           {"list --format xml", "unknown --format 'xml'; expected text or json"},
           {"topology", "topology is required"},
           {"compile", "required"},
           {"compile --topology complete:4 --collective broadcast --algorithm chain",
            "--output is required"},
           {"verify", "nothing to verify; expected a schedule file, or --topology"},
           {"verify --topology complete:4", "nothing to verify"},
           {"verify --topology complete:4 --collective reduce --algorithm rung", "unknown"},
           {"verify x --lambda 2", "'x' names its own collective"},
           {"simulate x", "cannot read 'x'"},
           {"verify x --root 1", "'x' names its own collective"},
           {"verify x --algorithm chain", "'x' names its own collective"},
           {"show a b", "b"}});
}

TEST_F(Command, RefusesWrongTopologies) {
  for (const std::string command :
       {"topology ", "compile --collective broadcast --algorithm chain -o x --topology "}) {
    expect_refused(command,
                   {{"rung:4",
                     "unknown topology 'rung:4'; expected complete:N, mesh:RxC, mesh:AxBxC, "
                     "torus:RxC, "},
                    {"torus:4", "'x' is missing"},
                    {"hypercube:0", "the number of dimensions is 0"},
                    {"dragonfly:5x2", "expected dragonfly:GxAxP with G groups of A routers of P"},
                    {"mesh:0x4", "the number of rows is 0 (at character 7); expected mesh:RxC"},
                    {"mesh:4", "'x' is missing"},
                    {"mesh:4x4y", "unexpected 'y'"},
                    {"complete:0", "the number of ranks is 0"},
                    {"complete:99999999999", "too large"},
                    {"fattree:k=4,h=2", "',c=' is missing"},
                    {"fattree:k=4x3,h=3", "h is not the number of arities, 2"},
                    {"'a\nb'", "unknown topology 'a\\x0ab'"}});
  }
}

TEST_F(Command, RefusesWhatCannotBeCompiled) {
  expect_refused(
      "compile --topology complete:4 -o x ",
      {{"--collective scattering --algorithm chain",
        "unknown collective 'scattering'; expected broadcast, reduce, allreduce, scan, "},
       {"--collective broadcast --algorithm rung",
        "unknown algorithm 'rung' for broadcast; expected binomial, "},
       {"--collective allreduce --algorithm binomial",
        "algorithm 'binomial' cannot do allreduce; expected chain, two-tree, "
        "two-tree-simplex, recursive-doubling, combine, "},
       {"--collective allgather --algorithm leaf",
        "algorithm 'leaf' of allgather is for fat trees, whose routers run programs too, "
        "not for complete:4"},
       {"--collective broadcast --algorithm crossbar-a",
        "algorithm 'crossbar-a' of broadcast is for crossbar:AxB[xC..], not for complete:4"},
       {"--collective broadcast --algorithm chain --run-length 2",
        "--run-length is no parameter of algorithm 'chain'; 'espalier list'"},
       {"--collective broadcast --algorithm lambda-tree --run-length 2",
        "'lambda-tree', which takes --lambda"},
       {"--collective broadcast --algorithm lambda-tree --lambda 1/2", "from 1 to 1"},
       {"--collective broadcast --algorithm lambda-tree --lambda 2/", "(L/S ticks"},
       {"--collective broadcast --algorithm chain --radix 3",
        "--radix is no parameter of algorithm 'chain'; 'espalier list'"},
       {"--collective broadcast --algorithm knomial --run-length 3",
        "'knomial', which takes --radix or --lambda"},
       {"--collective broadcast --algorithm knomial --radix 1",
        "--radix '1' is not a whole number from 2 to 129"},
       {"--collective broadcast --algorithm knomial --radix 130", "from 2 to 129"},
       {"--collective broadcast --algorithm binomial --radix 2",
        "--radix is no parameter of algorithm 'binomial'"},
       {"--collective broadcast --algorithm fractional --run-length 0",
        "--run-length '0' is not a whole"},
       {"--collective broadcast --algorithm chain --window 0", "--window '0' is not a whole"},
       {"--collective broadcast --algorithm chain --root 4",
        "--root on complete:4: '4' is not a whole number from 0 to 3"},
       {"--collective broadcast --algorithm chain --root -1", "from 0 to 3"},
       {"--collective broadcast --algorithm chain --root one", "from 0 to 3"},
       {"--collective broadcast --algorithm two-tree-mirror",
        "algorithm 'two-tree-mirror' cannot do broadcast on complete:4 with root 0: its "
        "mirrored trees need an odd number of ranks, not 4; expected two-tree"},
       {"--collective reduce --algorithm two-tree-mirror --root 3",
        "algorithm 'two-tree-mirror' cannot do reduce on complete:4 with root 3: its "
        "mirrored trees need an odd number of ranks, not 4; expected two-tree"}});
}

TEST_F(Command, RefusesWhatIsTooLargeToCompile) {
  expect_refused(
      "compile --topology fattree:k=17,h=2,c=1 --collective all-to-all --algorithm leaf-single -o "
      "x",
      "espalier: leaf-single on fattree:k=17,h=2,c=1: expected fattree:k=K,h=H,c=C of at most "
      "256 ");
  for (const char* collective : {"scatter", "gather"}) {
    expect_refused(std::string("compile --topology complete:130 --algorithm linear -o x "
                               "--collective ") +
                       collective,
                   "cannot do " + std::string(collective) +
                       " on complete:130 with root 0: a rank has a link to every other, and a node "
                       "has at most 128 links; expected at most 129 ranks, or algorithm 'chain'");
  }
  expect_refused(
      "compile --topology complete:200 --collective reduce --algorithm knomial --radix 100 -o x",
      "its program needs 101 indices, and boards have room for 64 (hosts for more: --limits host); "
      "expected fewer than 200 ranks, or another --radix");
  expect_refused("compile --topology complete:64 --collective all-to-all --algorithm bruck -o x",
                 "programs have no room for so many; expected fewer than 64 ranks");
  expect_refused(
      "compile --topology complete:4 --collective allreduce --algorithm ring --limits x -o x",
      "unknown --limits 'x'; expected boards or host");
  expect_refused("compile --topology complete:4 --collective broadcast --algorithm chain -o no/x",
                 "cannot write 'no/x': No such file or directory");
  expect_refused("topology mesh:2x2 --svg no/x", "cannot write 'no/x'");
  expect_refused("topology complete:1000000 --format json", "999999000000 links, too many");
}

TEST_F(Command, RefusesRatios) {
  expect_refused(
      "compile --topology complete:4 -o x ",
      {{"--collective broadcast --algorithm lambda-tree --ratio 3/5",
        "--ratio is no parameter of algorithm 'lambda-tree', which takes --lambda"},
       {"--collective broadcast --algorithm alpha-table --ratio 3/5",
        "--ratio is no parameter of algorithm 'alpha-table', which takes --lambda"},
       {"--collective broadcast --algorithm alpha-tree --radix 3",
        "'alpha-tree', which takes --lambda or --ratio"},
       {"--collective broadcast --algorithm alpha-tree --ratio 3/3", "from 1 to 2"},
       {"--collective broadcast --algorithm alpha-tree --ratio 0/3", "from 1 to 2"},
       {"--collective broadcast --algorithm alpha-tree --ratio 3/", "below 1): ''"},
       {"--collective broadcast --algorithm alpha-tree --ratio 1/1", "from 2 to"},
       {"--collective broadcast --algorithm alpha-tree --ratio 1.5",
        "--ratio '1.5' (A/B or a decimal, above 0 and below 1): expected a fraction "
        "such as 3/5, or a decimal such as 0.6 with at most 9 digits"},
       {"--collective broadcast --algorithm alpha-tree --ratio 0.0", "from 1 to 9"},
       {"--collective broadcast --algorithm alpha-tree --ratio 0.1234567891", "at most 9 digits"},
       {"--collective broadcast --algorithm alpha-tree --ratio 1", "a decimal such as"},
       {"--collective broadcast --algorithm alpha-tree --ratio 0.6x", "from 1 to 99"}});
  for (const char* ratio : {"0.00001", "0.999"}) {
    expect_refused(
        std::string("compile --topology complete:20000 --collective broadcast --algorithm "
                    "alpha-tree -o x --ratio ") +
            ratio,
        "or the tree is too deep; expected a --ratio nearer to 1/2, or fewer than 20000 ranks");
  }
}

TEST_F(Command, RefusesSomeTreesOfDifferentArities) {
  expect_refused(
      "compile --topology fattree:k=13x20 --collective all-to-all --algorithm leaf-single -o x",
      "espalier: leaf-single on fattree:k=13x20,c=1: expected fattree:k=K,h=H,c=C of at most ");
  expect_refused(
      "compile --topology fattree:k=4x3,c=1,2 --collective all-to-all --algorithm leaf-overlapped "
      "-o x",
      "algorithm 'leaf-overlapped' of all-to-all is for fattree:k=K,h=H,c=1, not for "
      "fattree:k=4x3,c=1,2");
  expect_refused(
      "compile --topology fattree:k=2x3x2x3x2x3x2 --collective all-to-all --algorithm leaf -o x",
      "algorithm 'leaf' cannot do all-to-all on fattree:k=2x3x2x3x2x3x2,c=1: ");
}

// A written schedule is verified, unless the caller asks for no verification.
TEST_F(Command, VerifiesWhatItCompiles) {
  const std::string what =
      "compile --topology fattree:k=2,h=2,c=2,3 --collective allgather --algorithm leaf -o x";
  EXPECT_PRED2(contains, expect_success(what), "\nproven for every N\n");
  EXPECT_PRED2(contains, run(what + " --no-verify").out, "\nnot verified\n");
  const auto json = json_of(what);
  EXPECT_EQ(json["verified"], true);
  EXPECT_EQ(json["proven_for"], "every N");
  EXPECT_EQ(nlohmann::json::parse(run(what + " --no-verify --format json").out)["verified"], false);
  EXPECT_EQ(run("verify x").status, 0);
}

TEST_F(Command, RefusesFilesThatAreNone) {
  for (const char* command : {"verify ", "show ", "simulate --bytes 8 "}) {
    expect_refused(std::string(command) + "missing.esp",
                   "cannot read 'missing.esp': No such file or directory");
    expect_refused(std::string(command) + ".", "cannot read '.': Is a directory");
    write(directory_ / "text", "this is no schedule");
    expect_refused(std::string(command) + "text", "'text': not a schedule file");
    write(directory_ / "empty", "");
    expect_refused(std::string(command) + "empty", "'empty': truncated");
  }
}

TEST_F(Command, RefusesDamagedFiles) {
  compile("good", "complete:3");
  const std::string good = read(directory_ / "good");
  for (std::size_t size = 8; size < good.size(); size += 41) {
    write(directory_ / "bad", good.substr(0, size));
    expect_refused("verify bad", "'bad': truncated: the file ends before its contents do");
  }
  for (std::size_t byte = 16; byte < good.size(); byte += 29) {
    std::string bad = good;
    bad[byte] = static_cast<char>(bad[byte] ^ (1 << byte % 8));
    write(directory_ / "bad", bad);
    expect_refused("show bad", "'bad': ");
    EXPECT_EQ(run("simulate bad --bytes 100").status, 2) << byte;
  }
}

TEST_F(Command, RefusesFilesForAnotherTopology) {
  compile("mesh", "mesh:2x2");
  for (const char* command : {"verify ", "show ", "simulate --bytes 8 "}) {
    expect_refused(std::string(command) + "mesh --topology complete:4",
                   "made for topology mesh:2x2, not for complete:4");
    expect_refused(std::string(command) + "mesh --topology mesh:2", "'x' is missing");
    EXPECT_EQ(run(std::string(command) + "mesh --topology mesh:2x2").status, 0);
  }
}

// The topology file is needed once: the schedule file has its contents, so changing it later does
// no harm.
TEST_F(Command, TakesTopologiesFromFiles) {
  const std::string text = "name: \"triangle\"\nranks: 3\nlink { from: 0 to: 1 }\n";
  write(directory_ / "t", text + "link { from: 1 to: 2 } link { from: 0 to: 2 }  # closed\n");
  write(directory_ / "other", text + "link { from: 1 to: 2 }");
  write(directory_ / "wrong", text + "link { from: 1 to: 3 }");
  expect_refused("topology file:wrong",
                 "espalier: wrong:4: link: 'to' is 3, which is not a node; expected 0 to 2");
  compile("b", "file:t");
  compile("same", "file:t");
  fs::rename(directory_ / "t", directory_ / "moved");
  compile("moved-b", "file:moved");
  EXPECT_EQ(read(directory_ / "moved-b"), read(directory_ / "b"));
  expect_refused("verify b --topology file:t", "cannot read 't': No such file or directory");
  expect_refused("verify b --topology file:other",
                 "made for topology triangle, not for another of this name");
  const std::string spec =
      "custom:name:\"triangle\" ranks:3 link{from:0 to:1} link{from:0 to:2} link{from:1 to:2}";
  for (const std::string& good :
       {std::string("verify b"), std::string("verify b --topology file:moved"),
        "verify b --topology '" + spec + "'", std::string("show b"),
        std::string("simulate b --bytes 9999"),
        std::string("topology file:moved --svg triangle.svg")}) {
    EXPECT_PRED2(contains, expect_success(good), "triangle") << good;
  }
  EXPECT_PRED2(contains, read(directory_ / "triangle.svg"), "3 ranks, 6 links");
  EXPECT_EQ(json_of("topology file:moved")["topology"], spec);
}

TEST_F(Command, RefusesNumbersOutOfRange) {
  compile("good", "complete:3");
  compile("sum", "complete:3", "reduce", "chain");
  expect_refused(
      "", {{"show good --rank 3", "--rank '3' is not a whole number from 0 to 2"},
           {"show good --rank -1", "--rank '-1' is not a whole number from 0 to 2"},
           {"show good --blocks 0", "--blocks '0' is not a whole number from 1 to 1000000"},
           {"show good --blocks 1e3", "--blocks '1e3' is not a whole number"},
           {"verify good --blocks 0", "--blocks '0' is not a whole number from 1 to 1000000"},
           {"simulate good --bytes -1", "--bytes '-1' is not a number of bytes from 0 to "},
           {"simulate good --bytes 1.5", "--bytes '1.5' is not a whole number of bytes"},
           {"simulate good --bytes 99999999999999999999", "--bytes '99999999999999999999' is"},
           {"simulate good --bytes 1TiB", "--bytes '1TiB' is not a number of bytes from 0 to "},
           {"simulate good --bytes 1024GiB", "MB are available here; expected fewer"},
           {"simulate good --bytes 8 --alpha -1", "--alpha '-1' is not a number from 0 to 1e+06"},
           {"simulate good --bytes 8 --beta nan", "--beta 'nan' is not a number from 0 to 1"},
           {"simulate good --bytes 8 --jitter -1", "--jitter '-1' is not a number from 0 to 1000"},
           {"simulate good --bytes 8 --link-jitter 1e9", "is not a number from 0 to 1000"},
           {"simulate good --bytes 8 --node-jitter inf", "is not a number from 0 to 1000"},
           {"simulate good --bytes 8 --switching worm",
            "unknown --switching 'worm'; expected cut-through"},
           {"simulate good --bytes 8 --alpha fast", "--alpha"},
           {"simulate sum --bytes 5", "5 bytes are no whole number of f32; expected a multiple"},
           {"simulate sum --bytes 8 --op average", "unknown operator 'average'"},
           {"simulate sum --bytes 8 --type i33", "unknown type 'i33'"},
           {"simulate good", "no --bytes; expected the size of the message"},
           {"simulate good --bytes 8 --model none", "cannot read 'none'"}});
}

// Units as nccl-tests and dd have them: K is 1024, KB is 1000.
TEST_F(Command, TakesBytesWithUnits) {
  compile("good", "complete:3");
  for (const auto& [text, bytes] : {std::pair{"1.5KiB", 1536},
                                    {"1K", 1024},
                                    {"2KB", 2000},
                                    {"2kB", 2000},
                                    {"0.5M", 524288},
                                    {"1MB", 1000000}}) {
    EXPECT_EQ(json_of(std::string("simulate good --bytes ") + text)["bytes"], bytes) << text;
  }
  for (const char* text : {"1.3", "0.0001KB", "1.5.5K", "K", "1 K", "1e3", "0x10", "-1K", "1Kib"}) {
    expect_refused(std::string("simulate good --bytes '") + text + "'",
                   "KiB, MiB, GiB: powers of 1024; KB, MB, GB: of 1000");
  }
}

// `list` and the refusal say how long a run may be, and a run that long compiles.
TEST_F(Command, ListsTheLongestRun) {
  int limited = 0;
  for (const auto& offer : json_of("list")) {
    const std::string collective = offer["collective"], algorithm = offer["algorithm"];
    const std::uint32_t longest = offer["max_run_length"];
    const auto parameters = offer["parameters"].get<std::vector<std::string>>();
    const bool has_runs =
        std::find(parameters.begin(), parameters.end(), "--run-length") != parameters.end();
    EXPECT_EQ(longest > 0, has_runs) << algorithm;
    if (longest == 0) continue;
    ++limited;
    const bool mesh = algorithm == "fractional-mesh";  // runs as an embedding has them
    const std::string topology = algorithm.starts_with("crossbar") ? "crossbar:4x64"
                                 : mesh                            ? "mesh:8x16"
                                                                   : "complete:100";
    const std::string all = "compile -o x --topology " + topology + " --collective " + collective +
                            " --algorithm " + algorithm + " --run-length ";
    expect_refused(all + std::to_string(longest + 1),
                   "--run-length " + std::to_string(longest + 1) + " is above " +
                       std::to_string(longest) + ", the longest run length of algorithm '" +
                       algorithm + "' of " + collective);
    if (mesh || (small_sample() && !sampled(static_cast<std::uint64_t>(limited), 4))) continue;
    expect_success(all + std::to_string(longest));
    EXPECT_PRED2(contains, expect_success("verify x"), "ceil(N/" + std::to_string(longest) + ")");
    fs::remove(directory_ / "x");
  }
  EXPECT_EQ(limited, 12);
  EXPECT_PRED2(contains, run("list").out, "takes --run-length up to 30");
}

// Commands that expand a schedule refuse an N that no message of it has.
TEST_F(Command, RefusesBlocksThatAScheduleNeverHas) {
  compile("one", "complete:9", "scatter", "binomial");
  compile("postal", "complete:9", "broadcast", "lambda-tree", "--lambda 2");
  compile("sum", "complete:8", "allreduce", "combine");
  compile("barrier", "complete:9", "barrier", "dissemination");
  compile("thirds", "complete:9", "broadcast", "fractional-direct", "--run-length 3");
  for (const std::string file : {"one", "postal", "sum", "barrier"}) {
    for (const std::string command : {"show ", "draw -o x.html ", "draw --svg x.svg "}) {
      expect_refused(command + file + " --blocks 2",
                     "--blocks 2: the schedule has no such N; expected N = 1, the only one its "
                     "block table gives");
    }
    EXPECT_EQ(run("show " + file + " --blocks 1").status, 0) << file;
    EXPECT_EQ(run("draw --svg x.svg " + file + " --blocks 1").status, 0) << file;
    fs::remove(directory_ / "x.svg");
    EXPECT_PRED2(contains, run("verify " + file + " --blocks 2").out, "N = 1, the only one");
  }
  for (const std::string command : {"show thirds ", "draw thirds --svg x.svg "}) {
    expect_refused(command + "--blocks 4",
                   "--blocks 4: the schedule has no such N; expected N = 0 mod 3, such as 3");
    EXPECT_EQ(run(command + "--blocks 6").status, 0);
    fs::remove(directory_ / "x.svg");
  }
  expect_refused("verify thirds --blocks 2",
                 "--blocks 2: the schedule has no N up to that; expected 3, its smallest, or more");
  EXPECT_PRED2(contains, run("verify thirds --blocks 4").out, "every N = 0 mod 3 up to 3");
}

// Every algorithm that is offered, on topologies of each kind that take it.
TEST_F(Command, CompilesVerifiesShowsAndSimulates) {
  constexpr const char* kAlone = "complete:1";
  const auto offers = json_of("list");
  EXPECT_GE(offers.size(), 31u);
  std::vector<std::string> topologies = {kAlone,      "complete:2",          "mesh:2x4",
                                         "torus:2x3", "fattree:k=3,h=2,c=1", "crossbar:2x4",
                                         "hosts:3x2"};
  std::uint64_t turn = 0;
  for (const auto& offer : offers) {
    if (small_sample() && !sampled(turn++, 6)) continue;
    const std::string collective = offer["collective"];
    const std::string algorithm = offer["algorithm"];
    // One schedule, and not a selection.
    const std::string own = offer["max_run_length"] > 0 ? " --run-length own" : "";
    int compiled = 0;
    // The samples: each algorithm on two topologies, or one in six on one; all topologies in
    // turn.
    std::rotate(topologies.begin(), topologies.begin() + 1, topologies.end());
    for (const std::string& topology : topologies) {
      if (!whole() && compiled == (small_sample() ? 1 : 2)) break;
      SCOPED_TRACE(collective + " by " + algorithm + " on " + topology);
      const CommandResult made = run("compile --topology " + topology + " --collective " +
                                     collective + " --algorithm " + algorithm + own + " -o s");
      if (made.status != 0) {
        EXPECT_EQ(made.status, 2) << made.err;
        continue;
      }
      ++compiled;
      const std::string shown = expect_success("show s");
      const bool rooted = collective == "broadcast" || collective == "reduce" ||
                          collective == "scatter" || collective == "gather";
      for (const std::string& text : {made.out, shown}) {
        EXPECT_EQ(text.find(", root 0") != std::string::npos, rooted) << text;
      }
      EXPECT_EQ(json_of("show s").contains("root"), rooted);
      EXPECT_EQ(json_of("verify s --blocks 7")["valid"], true);
      for (const char* bytes : {"0", "4", "20KiB"}) {
        if (collective == "barrier" && bytes[0] != '0') continue;
        if (small_sample() && collective != "barrier" && bytes[0] != '2') continue;
        const auto json = json_of(std::string("simulate s --bytes ") + bytes);
        EXPECT_EQ(json["right"], true);
        // A lone rank only copies: steps without transfers, which are not counted.
        if (topology != kAlone) {
          EXPECT_EQ(json["simulated_steps"], json["predicted_steps"]) << json;
        }
      }
    }
    EXPECT_GE(compiled, 1) << collective << " by " << algorithm;
  }
}

TEST_F(Command, LowersOntoLinks) {
  const std::string broadcast = "--topology mesh:4x4 --collective broadcast --algorithm two-tree ";
  const std::string text =
      expect_success("compile " + broadcast + "--embedding none --links hop-by-hop -o b.esp");
  EXPECT_PRED2(contains, text, "; period 3 (routed: 2), as rank ");
  EXPECT_PRED2(contains, text, "\nsteps 10 + 3 N ");
  EXPECT_PRED2(contains, run("show b.esp --rank 5").out, "two-tree, lowered");
  EXPECT_PRED2(contains, run("verify b.esp --loads").out, "3N+10 steps");
  EXPECT_EQ(run("simulate b.esp --bytes 1MiB").status, 0);
  const CommandResult placed = run("compile " + broadcast + "--links hop-by-hop -o b.esp");
  EXPECT_PRED2(contains, placed.out, "; period 2 (routed: 2), as rank ");
  const std::string exchange =
      "--topology fattree:k=4,h=2,c=k --collective all-to-all --algorithm pairwise ";
  const CommandResult json =
      run("compile " + exchange + "--links hop-by-hop --ports single-send --format json -o a.esp");
  const auto lowered = nlohmann::json::parse(json.out).at("lowered");
  EXPECT_EQ(lowered.at("period"), 192) << "16 ranks send 12 parts each past the root";
  EXPECT_EQ(lowered.at("busiest"), nlohmann::json({20, 20}));
  EXPECT_EQ(nlohmann::json::parse(json.out).at("nodes"), 21);
  EXPECT_PRED2(contains, run("verify " + exchange + "--links hop-by-hop").out,
               "proven for every N");
  const CommandResult same =
      run("compile --topology mesh:1x5 --collective broadcast --algorithm chain --links hop-by-hop "
          "-o c");
  EXPECT_PRED2(contains, same.out, "hop by hop already");
  const std::string compile = "compile -o x " + broadcast;
  expect_refused(compile + "--links some", "unknown --links 'some'; expected routed or hop-by-hop");
  expect_refused(compile + "--ports multiport", "expected --links hop-by-hop");
  expect_refused(compile + "--links hop-by-hop --ports two", "expected multiport or single-send");
}

TEST_F(Command, PrintsJsonWhereverItPrintsResults) {
  compile("s", "mesh:2x2", "broadcast", "chain", "--root 3");
  for (const char* arguments :
       {"list", "topology mesh:2x2", "verify s", "show s", "show s --rank 1 --blocks 2",
        "simulate s --bytes 9",
        "compile --topology complete:2 --collective reduce --algorithm chain -o r"}) {
    const std::string result = expect_success(std::string(arguments) + " --format json");
    EXPECT_TRUE(nlohmann::json::accept(result)) << arguments << ": " << result;
  }
  EXPECT_EQ(json_of("show s")["root"], 3);
}

TEST_F(Command, ShowsMessagesAndTheBlocksThatThereAre) {
  compile("s", "complete:8", "scatter", "binomial");
  const auto scatter = json_of("show s --rank 4 --blocks 1");
  EXPECT_EQ(scatter["cuts_messages"], false);
  const auto received = scatter["programs"][0]["steps"][0];  // the parts of ranks 4 to 7
  EXPECT_EQ(received["kind"], "receive");
  EXPECT_EQ(received["peer"], 0);
  EXPECT_EQ(received["into"]["segment"], 4);
  EXPECT_EQ(received["into"]["segments"], 4);
  EXPECT_EQ(received["into"]["block"], 0);
  compile("c", "complete:8", "broadcast", "circulant");
  const auto circulant = json_of("show c --rank 1");
  EXPECT_EQ(circulant["cuts_messages"], true);
  EXPECT_EQ(circulant["residue"], 1);
  EXPECT_EQ(circulant["residue_mod"], 3);
}

TEST_F(Command, ListsLimitsOfRanks) {
  for (const auto& entry : json_of("list")) {
    const bool linear = entry["algorithm"] == "linear";
    if (linear || entry["algorithm"] == "ring") {
      EXPECT_EQ(entry["max_ranks"], linear ? 129 : 0);
    }
    const bool mirrored = entry["algorithm"] == "two-tree-mirror" &&
                          (entry["collective"] == "broadcast" || entry["collective"] == "reduce");
    EXPECT_EQ(entry["needs_odd_ranks"], mirrored) << entry;
  }
}

TEST_F(Command, HelpsWithExamplesOnEachLevel) {
  for (const char* command : {"", "list", "topology", "compile", "verify", "show", "simulate"}) {
    const CommandResult result = run(std::string(command) + " --help");
    EXPECT_EQ(result.status, 0) << command;
    EXPECT_PRED2(contains, result.out, "Example") << command;
    EXPECT_EQ(result.err, "");
  }
}

// A file that was there before is replaced whole, or kept.
TEST_F(Command, ReplacesFilesWhole) {
  write(directory_ / "x", "precious");
  expect_refused("compile --topology complete:4 --collective broadcast --algorithm rung -o x",
                 "unknown algorithm");
  EXPECT_EQ(read(directory_ / "x"), "precious");
  compile("x", "complete:4");
  EXPECT_EQ(read(directory_ / "x").substr(0, 8), "ESPALIER");
  EXPECT_EQ(files(), std::vector<std::string>{"x"});
}

// Under sanitizers the other tests run it in a child that starts no program.
TEST_F(Command, TheBuiltProgramDoesTheSame) {
  for (const char* arguments :
       {"compile --topology complete:5 --collective reduce --algorithm chain --root 2 -o s",
        "verify s --format json", "show s", "simulate s --bytes 5000 --format json",
        "draw s --svg s.svg", "list", "--help", "--version", "", "verify none", "frobnicate",
        "compile -o 'a b' --topology complete:3 --collective barrier --algorithm rung"}) {
    const CommandResult built = result(run_built_command(directory_, arguments));
    const CommandResult forked = result(run_forked_command(directory_, arguments));
    EXPECT_EQ(built.status, forked.status) << arguments;
    EXPECT_EQ(built.out, forked.out) << arguments;
    EXPECT_EQ(built.err, forked.err) << arguments;
  }
}

TEST_F(Command, AFullDiskIsNoSuccess) {
  const std::string command = std::string("'") + ESPALIER_BINARY + "' list > /dev/full 2> '" +
                              (directory_ / ".err").string() + "'";
  EXPECT_EQ(WEXITSTATUS(std::system(command.c_str())), 2);
  EXPECT_EQ(read(directory_ / ".err"), "espalier: cannot write to stdout\n");
}

}  // namespace
}  // namespace espalier
