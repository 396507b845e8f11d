// placeholder main, see below
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include "tests/soak/controller.h"
#include "tests/soak/member.h"
int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "member") == 0) return espalier::soak::run_member();
  std::string folder = "/tmp/soak-XXXXXX";
  if (!mkdtemp(folder.data())) return 2;
  espalier::soak::Record record;
  {
    espalier::soak::Controller c(argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1, folder);
    record = c.run(std::chrono::seconds(argc > 1 ? atoi(argv[1]) : 20), true);
    if (!record.error.empty()) { std::printf("%s\n", record.error.c_str()); if (getenv("SOAK_HOLD")) getchar(); }
  }
  std::filesystem::remove_all(folder);
  std::printf("jobs %lu kills %lu collectives %lu left %zu\n", record.jobs, record.kills, record.collectives, record.left.size());
  return record.error.empty() ? 0 : 1;
}
