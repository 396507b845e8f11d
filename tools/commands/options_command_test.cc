// Options that a command cannot honour, beside others, are refused: none is ignored.

#include "tools/commands/testing/command_fixture.h"

namespace espalier {
namespace {

using OptionsCommand = Command;

TEST_F(OptionsCommand, RefusesWhatASelectionCannotHonour) {
  for (const char* const command : {"compile -o x --topology ", "verify --topology "}) {
    expect_refused(
        command,
        {{"complete:4 --collective allgather --algorithm ring --root 3",
          "allgather has no root; expected no --root 3"},
         {"complete:4 --collective barrier --algorithm dissemination --root 3",
          "barrier has no root; expected no --root 3"},
         {"complete:4 --collective allreduce --algorithm chain --root 1",
          "allreduce has no root; expected no --root 1"},
         {"complete:4 --collective broadcast --algorithm chain --window 65",
          "--window '65' is not a whole number from 1 to 64"},
         {"complete:4 --collective broadcast --algorithm lambda-tree --lambda 9 --window 4",
          "algorithm 'lambda-tree' on complete:4 needs 9 steps in flight; expected --window 9"},
         {"fattree:k=4,h=3,c=1 --collective allgather --algorithm leaf-single --window 64",
          "algorithm 'leaf-single' on fattree:k=4,h=3,c=1 has room for 54 steps in flight; "
          "expected --window 54"},
         {"fattree:k=3,h=2,c=1 --collective allgather --algorithm leaf --links hop-by-hop "
          "--ports single-send",
          "'leaf' on fattree:k=3,h=2,c=1 cannot be lowered: every peer is a neighbour already, "
          "and its nodes send over several links in a step; expected ports multiport"},
         {"complete:4 --collective broadcast --algorithm chain --ports multiport",
          "expected --links hop-by-hop"}});
  }
  // A schedule that keeps narrower ports than it may use is one of those asked for.
  for (const char* arguments :
       {"mesh:1x5 --collective broadcast --algorithm chain --ports single-send",
        "fattree:k=3,h=2,c=1 --collective broadcast --algorithm leaf --ports single-send",
        "fattree:k=3,h=2,c=1 --collective all-to-all --algorithm leaf-single --ports multiport",
        "complete:4 --collective allgather --algorithm ring --ports multiport --root 0"}) {
    expect_success(std::string("compile -o x --links hop-by-hop --topology ") + arguments);
  }
}

TEST_F(OptionsCommand, RefusesWhatARunInVirtualTimeCannotHonour) {
  compile("good", "complete:3");
  compile("sum", "complete:3", "reduce", "chain");
  compile("wait", "complete:3", "barrier", "dissemination");
  write(directory_ / "model", "{}");
  expect_refused(
      "", {{"simulate good --bytes 8 --op sum", "broadcast combines nothing; expected no --op"},
           {"simulate good --bytes 8 --type f64", "broadcast combines nothing; expected no --type"},
           {"simulate sum --bytes 8 --op affine --type f64",
            "operator 'affine' has a type of its own; expected no --type"},
           {"simulate good --bytes 8 --seed 7", "--seed is for jitter; expected --jitter"},
           {"simulate good --bytes 8 --model model --alpha 1e-6", "--model excludes --alpha"},
           {"simulate good --bytes 8 --model model --beta 1e-9", "--model excludes --beta"},
           {"simulate good --bytes 8 --op sum --output d", "broadcast combines nothing"},
           {"simulate good --bytes 8 --switching none --events d", "unknown --switching 'none'"},
           {"simulate good --bytes 8 --no-data --output d", "--output writes results"},
           {"simulate sum --bytes 8 --no-data --op max", "--op is for data"},
           {"simulate good --bytes 8 --no-data --op sum", "--op is for data"},
           {"simulate good --bytes 8 --no-data --type f64", "expected no --type"},
           {"simulate sum --bytes 9 --no-data", "9 bytes are no whole number of f32"},
           {"simulate good --bytes 8 --no-data --seed 7", "--seed is for jitter"},
           {"simulate good --bytes 8 --type u128", "expected no --type"},
           {"simulate sum --bytes 8 --type u128", "unknown type 'u128'"},
           {"simulate good --bytes 8 --trace no/t", "cannot write 'no/t': No such file"},
           {"simulate good --bytes 8 --trace t --op sum", "broadcast combines nothing"},
           {"simulate good --bytes 8 --trace .", "cannot write '.': Is a directory"},
           {"simulate wait --output d", "a barrier has none; expected no --output"},
           {"verify good --explain --format json", "--explain is for text"},
           {"verify good --picture no/p.svg", "cannot write 'no/p.svg'"}});
  EXPECT_EQ(run("simulate good --bytes 8 --jitter 0.5 --seed 7").status, 0);
  EXPECT_EQ(run("simulate sum --bytes 8 --op affine").status, 0);
}

// As `espalier run` says it, before anything starts.
TEST_F(OptionsCommand, RefusesOperatorsThatNeedTheOrderOfRanks) {
  compile("combine", "complete:4", "allreduce", "combine");
  expect_refused(
      "simulate combine --bytes 80 --op affine",
      "operator 'affine' does not commute, and allreduce by combine with root 0 does not "
      "keep the order of ranks; expected another algorithm, ranks as numbered "
      "(--embedding none), or sum, product, ...");
}

#ifdef ESPALIER_WITH_OFI
TEST_F(OptionsCommand, RefusesWhatARealRunCannotHonour) {
  compile("good", "complete:3");
  write(directory_ / "model", "{}");
  write(directory_ / "private.pem", "-----BEGIN PRIVATE KEY-----\nx\n-----END PRIVATE KEY-----\n");
  expect_refused(
      "", {{"run good --bytes 8 --op sum", "broadcast combines nothing; expected no --op"},
           {"run good --embedding none", "--embedding excludes file"},
           {"run good --root 0", "--root excludes file"},
           {"run good --unsigned", "--unsigned is for nodes that boot images"},
           {"run good --public-key model", "--public-key is for nodes that boot images"},
           {"run good --type u128", "broadcast combines nothing; expected no --type"},
           {"run --collective barrier --algorithm dissemination --root 3",
            "barrier has no root; expected no --root 3"},
           {"run --collective barrier --algorithm dissemination --output d",
            "a barrier has none; expected no --output"},
           {"run good --ports single-send", "--ports excludes file"},
           {"run --ports single-send", "expected --links hop-by-hop"},
           {"run good --repeat 0", "--repeat '0' is not a whole number from 1 to 1000000"},
           {"run good --ranks --format json", "--ranks is for text"},
           {"run good --trace no/t", "cannot write 'no/t': No such file or directory"},
           {"measure --plot no/p.svg", "cannot write 'no/p.svg': No such file or directory"},
           {"run good --address nonsense.invalid",
            "--address 'nonsense.invalid': it is not a numeric IPv4 or IPv6 address"},
           {"run good --address 127.0.0.%n0%n",
            "'127.0.0.303' for node 2 is not a numeric IPv4 or IPv6 address"},
           {"run good --address 192.0.2.1", "'192.0.2.1': it is not an address of this host"},
           {"measure --address localhost", "it is not a numeric IPv4 or IPv6 address"},
           {"measure --address fe80::1", "'fe80::1': it has no interface; expected e.g. 127.0.0.1"},
           {"measure --address ::1%lo", "'::1%lo': it is not a numeric IPv4 or IPv6 address"},
           {"run good --image i --public-key private.pem",
            "'private.pem' is a private key; expected its public key"},
           {"run good --image i", "expected one of --public-key FILE and --unsigned"},
           {"run good --provider mem --address 127.0.0.1",
            "--address is an IP to bind, and mem binds none; expected --provider tcp"},
           {"measure --provider mem --address 127.0.0.1", "mem binds none"},
           {"run good --provider mem+shm", "\"mem+shm\": a peer that is stopped or killed"},
           {"run good --provider mem --authenticate-data",
            "mem cannot authenticate payloads; expected --provider tcp"}});
}
#endif

TEST_F(OptionsCommand, RefusesWhatAPictureOrASearchCannotHonour) {
  compile("good", "complete:3");
  write(directory_ / "trace", "[]");
  const std::string embed = "embed -o e.textproto --topology mesh:4x4 --collective broadcast ";
  expect_refused("", {{"draw good -o p.html --show load",
                       "--show is for a picture, the page shows all; expected --svg as well"},
                      {"draw good -o p --svg p", "-o and --svg both name 'p'"},
                      {"draw good --svg p.svg --trace trace", "--trace is for a page"},
                      {"draw good --svg p.svg --show trees --step 1",
                       "--show trees is of all steps; expected no --step"}});
  expect_refused(embed + "--algorithm two-tree --tree h-tree",
                 "--tree is for --algorithm fractional-mesh alone");
  expect_refused(embed +
                     "--algorithm fractional-mesh --group 1x2 --switching store-and-forward "
                     "--period 3",
                 "one more than a group has ranks; expected no --period");
}

}  // namespace
}  // namespace espalier
