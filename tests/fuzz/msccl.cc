// Fuzz target: any text is refused with one line, or is an MSCCL algorithm that becomes a schedule
// file which loads and names the algorithm's collective.

#include <string>

#include "espalier/topology/topology.h"
#include "planner/files/loaded_schedule.h"
#include "tests/fuzz/expect.h"
#include "tools/common/failure.h"
#include "tools/common/schedules.h"
#include "tools/formats/msccl_file.h"
#include "tools/formats/msccl_import.h"

namespace espalier::fuzz {
namespace {

constexpr std::size_t kMaxGpus = 8;  // larger ones take long to prove
constexpr std::int64_t kMaxChunks = 64;

void examine(const std::string& text) {
  using namespace tools;
  formats::MscclFile file;
  try {
    file = formats::read_msccl("input", text);
  } catch (const Failure& failure) {
    expect(failure.exit_status == kBadInput && failure.line.starts_with("'input', line "),
           "an error of the form names the line");
    throw;
  }
  if (file.gpus.size() > kMaxGpus || file.chunks > kMaxChunks) return;
  const auto topology = topology::parse("complete:" + std::to_string(file.gpus.size()));
  expect(topology.has_value(), "there is a topology for every number of ranks");
  formats::ImportedMsccl imported = formats::import_msccl("input", file, **topology, {});
  const planner::LoadedSchedule loaded = load_schedule("imported", std::move(imported.bytes), "");
  expect(loaded.programs.size() == file.gpus.size(), "a program for each rank");
  expect(loaded.programs.front().collective == file.collective, "the same collective");
}

}  // namespace

void run(Input& input) {
  try {
    examine(input.text());
  } catch (const tools::Failure& failure) {
    expect(failure.line.starts_with("'input'") && failure.line.find('\n') == std::string::npos,
           "a refusal is one line that names the file");
  }
}

}  // namespace espalier::fuzz
