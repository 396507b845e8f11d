// broken-schedules DIR: writes into DIR the ten schedules broken by hand, the sound schedules that
// they are made from, and a picture of each fault. Prints the counterexamples. Exit status 0: every
// sound schedule is valid and every broken one refused; 1: otherwise; 2: DIR cannot be written.

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "collectives/verify/report/picture.h"
#include "collectives/verify/testing/broken.h"
#include "espalier/collectives/schedule/programs.h"

namespace espalier::verify {
namespace {

bool write(const std::string& path, const char* bytes, std::size_t size) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes, static_cast<std::streamsize>(size));
  file.close();
  if (!file) std::fprintf(stderr, "broken-schedules: cannot write '%s'\n", path.c_str());
  return static_cast<bool>(file);
}

bool write_schedule(const std::string& path, const topology::Topology& topology,
                    const std::vector<OwnedProgram>& programs) {
  ScheduleFileWriter writer(topology.spec(), topology.digest(), topology.ranks(), topology.ranks());
  std::vector<std::uint8_t> bytes;
  Status status = Status::kOk;
  for (const Program& program : programs) {
    if (status == Status::kOk) status = writer.add(program);
  }
  if (status == Status::kOk) status = writer.finish(bytes);
  if (status != Status::kOk) {
    std::fprintf(stderr, "broken-schedules: '%s': %s\n", path.c_str(), status_name(status));
    return false;
  }
  return write(path, reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

int run(const std::string& directory) {
  bool right = true;
  for (const Broken& one : broken_schedules()) {
    const auto program = [&one](std::uint32_t node) -> const Program& { return one.broken[node]; };
    const Verdict sound = verdict_of(*one.topology, one.sound);
    const Verdict broken = verify(*one.topology, program, {});
    const std::string svg = draw_svg(*one.topology, program, 0, &broken.counterexample);
    const std::string base = directory + "/" + one.name;
    if (!write_schedule(base + "-sound.esp", *one.topology, one.sound) ||
        !write_schedule(base + ".esp", *one.topology, one.broken) ||
        !write(base + ".svg", svg.data(), svg.size())) {
      return 2;
    }
    right = right && sound.valid && !broken.valid && broken.counterexample.property == one.property;
    std::printf("%s: %s\n    %s\n", one.name.c_str(), one.story.c_str(),
                broken.valid ? "(taken for valid)" : broken.counterexample.message.c_str());
  }
  return right ? 0 : 1;
}

}  // namespace
}  // namespace espalier::verify

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: broken-schedules DIR\n");
    return 2;
  }
  return espalier::verify::run(argv[1]);
}
