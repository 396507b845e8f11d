// Soak: eight processes live through many jobs of random collectives, with kills and rejoins. Every
// result is checked; memory, descriptors, threads and files must stay constant.
//
// soak [--seconds N] [--seed S] [--page FOLDER] [--plot FILE] [--verbose]
//
// Default: 20 seconds, a random seed. --page writes soak.md into the folder, --plot draws the
// samples, --verbose prints a line for each job. Exit status 1: something was wrong, or did not
// stay constant. `soak member` is one of the processes.

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "tests/options.h"
#include "tests/soak/controller.h"
#include "tests/soak/member.h"
#include "tests/soak/report.h"

namespace espalier::soak {
namespace {

struct Arguments {
  std::uint64_t seconds = 20;
  std::uint64_t seed = std::random_device()() % 1'000'000;
  std::string page, plot;  // folder and file; empty: none
  bool verbose = false;
};

Arguments read(std::vector<std::string> words) {
  Arguments arguments;
  arguments.verbose = std::erase(words, "--verbose") != 0;
  const testing::Options given("soak", words, {"--seconds", "--seed", "--page", "--plot"});
  given.read("--seconds", arguments.seconds, 0, 999'999'999);
  given.read("--seed", arguments.seed, 0, 999'999'999);
  arguments.page = given.text("--page");
  arguments.plot = given.text("--plot");
  if (given.has("--page") && !std::filesystem::is_directory(arguments.page)) {
    given.refuse("--page: '" + arguments.page + "' is no folder");
  }
  return arguments;
}

int run(const std::vector<std::string>& words) {
  if (words.size() == 1 && words[0] == "member") return run_member();
  const Arguments arguments = read(words);
  std::string folder = std::filesystem::temp_directory_path() / "espalier-soak-XXXXXX";
  if (mkdtemp(folder.data()) == nullptr) {
    std::fprintf(stderr, "soak: cannot make '%s': %s\n", folder.c_str(), std::strerror(errno));
    return 2;
  }
  std::printf("%llu seconds, seed %llu\n", static_cast<unsigned long long>(arguments.seconds),
              static_cast<unsigned long long>(arguments.seed));
  std::fflush(stdout);
  const Record record = Controller(arguments.seed, folder)
                            .run(std::chrono::seconds(arguments.seconds), arguments.verbose);
  std::filesystem::remove_all(folder);
  const std::string command = "build/tests/soak/soak --seconds " +
                              std::to_string(arguments.seconds) + " --seed " +
                              std::to_string(arguments.seed) + " --page docs/results";
  const std::string text = page(record, command);
  std::fputs(text.c_str(), stdout);
  if (!record.samples.empty()) {
    if (!arguments.page.empty()) std::ofstream(arguments.page + "/soak.md") << text;
    if (!arguments.plot.empty()) std::ofstream(arguments.plot) << picture(record);
  }
  const std::vector<std::string> found = findings(record);
  for (const std::string& one : found) std::printf("BAD: %s\n", one.c_str());
  return found.empty() ? 0 : 1;
}

}  // namespace
}  // namespace espalier::soak

int main(int argc, char** argv) { return espalier::soak::run({argv + 1, argv + argc}); }
