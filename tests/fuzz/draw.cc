// Fuzz target: a schedule file with correct checksums is refused with one line, or every command
// that opens schedules does its work: show, draw, simulate and the exports. The first byte chooses
// between a file whose checksums are corrected (schedule_file.h) and a valid schedule of the
// catalogue, whose fields, numbers and bytes the rest of the input changes. Before, machines run
// the programs as nodes decode them, each its own alone.
//
// The stated bounds: at most 2^14 instances and 4096 steps are expanded. Exports prove a schedule
// first; here with the bounds of the target `schedule`.

#include <fcntl.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "collectives/predict/model.h"
#include "collectives/verify/testing/verdict_of.h"
#include "espalier/collectives/verify/verify.h"
#include "planner/make/blocks.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/program_edits.h"
#include "tests/fuzz/schedule_file.h"
#include "tests/mutation/wild.h"
#include "tests/mutation/wild_machines.h"
#include "tools/commands/simulate.h"
#include "tools/common/failure.h"
#include "tools/common/schedules.h"
#include "tools/draw/page.h"
#include "tools/draw/picture.h"
#include "tools/formats/chakra.h"
#include "tools/formats/goal.h"
#include "tools/formats/msccl.h"
#include "tools/formats/mscclpp.h"
#include "tools/report/show_json.h"
#include "tools/report/trace_json.h"

namespace espalier::fuzz {
namespace {

using planner::LoadedSchedule;

constexpr std::int64_t kMaxSteps = 4096;
constexpr std::int64_t kMaxExpanded = 1 << 14;
constexpr std::int64_t kMaxProven = 4096;  // instances of one N
constexpr std::uint64_t kBytes = 1000;     // of the messages of simulate and the exports

// Whether the schedule is small enough for this target for N = `blocks`.
bool small(const LoadedSchedule& loaded, std::int64_t blocks) {
  std::int64_t instances = 0;
  for (const Program& program : loaded.programs) {
    if (phase_steps(program, blocks) > kMaxSteps) return false;
    for (std::uint32_t k = 0; k < program.actions_count; ++k) {
      const Count& count = program.counts[program.actions[k].instances_ref];
      instances += std::clamp<std::int64_t>(count_value(count, blocks), 0, kMaxExpanded);
    }
  }
  return instances <= kMaxExpanded;
}

void draw(const LoadedSchedule& loaded, std::int64_t blocks) {
  tools::or_bad_input(planner::check_form(loaded, blocks));
  if (phase_steps(loaded.programs.front(), blocks) == 0) return;
  expect(!tools::make_page(loaded, blocks, 1, {}).empty(), "a page is made");
  for (const tools::View view : {tools::View::kStep, tools::View::kTrees, tools::View::kLoad}) {
    expect(!tools::draw_picture(loaded, view, blocks, 0).empty(), "a picture is made");
  }
}

void show(const LoadedSchedule& loaded, std::int64_t blocks) {
  (void)tools::schedule_json(loaded, -1, 0);
  tools::or_bad_input(planner::check_form(loaded, blocks));
  (void)tools::schedule_json(loaded, -1, blocks);
  (void)tools::log_room(loaded.programs, blocks);
}

// N of the message that simulate and the exports for simulators are given; 0: none.
std::int64_t message_blocks(const Program& program) {
  Layout layout;
  const std::uint64_t count = program.collective == Collective::kBarrier ? 0 : kBytes / 4;
  return make_layout(program, count, 4, layout) == Status::kOk ? layout.blocks : 0;
}

// Runs the command, whose report goes nowhere.
void simulate(const LoadedSchedule& loaded) {
  const std::int64_t blocks = message_blocks(loaded.programs.front());
  if (!small(loaded, std::max<std::int64_t>(blocks, 1))) return;
  const MemoryFile file(loaded.bytes.data(), loaded.bytes.size());
  tools::SimulateOptions options;
  options.file = file.path();
  if (loaded.programs.front().collective != Collective::kBarrier) {
    options.bytes = std::to_string(kBytes);
  }
  std::fflush(stdout);
  const int out = dup(STDOUT_FILENO), nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
  dup2(nowhere, STDOUT_FILENO);
  const auto put_back = [&] {
    std::fflush(stdout);
    dup2(out, STDOUT_FILENO);
    close(out);
    close(nowhere);
  };
  try {
    tools::run_simulate(options);
  } catch (const tools::Failure&) {
    put_back();
    throw;
  }
  put_back();
}

// Whether the schedule is proven within this target's bounds.
bool prove(const LoadedSchedule& loaded) {
  verify::VerifyOptions options{.links = false,
                                .max_blocks = 6,
                                .max_instances = kMaxProven,
                                .max_instances_total = 64 * kMaxProven};
  return verify::verdict_of(*loaded.topology, loaded.programs, options).valid;
}

void write_exports(const LoadedSchedule& loaded, std::int64_t blocks, unsigned format) {
  using namespace tools::formats;
  if (!prove(loaded)) return;
  constexpr std::size_t kReaders = std::size(kMscclReaders);
  if (format < kReaders) {
    expect(!write_msccl(loaded, blocks, kMscclReaders[format]).empty(), "MSCCL XML is written");
  } else if (format == kReaders) {
    expect(!write_mscclpp(loaded, blocks).empty(), "a plan of MSCCL++ is written");
  } else {
    const Program& first = loaded.programs.front();
    const bool is_barrier = first.collective == Collective::kBarrier;
    if (!small(loaded, std::max<std::int64_t>(message_blocks(first), 1))) return;
    const SizedOperations sized =
        size_operations(loaded, is_barrier ? 0 : kBytes, predict::line_model(1e-6, 1e-9));
    expect(!write_goal(sized).empty(), "GOAL is written");
    expect(!write_chakra(sized, 0, collective_name(first.collective)).empty(),
           "a trace of Chakra is written");
  }
}

void examine(const std::vector<std::uint8_t>& file, unsigned work, unsigned wanted) {
  constexpr unsigned kFormats = std::size(tools::formats::kMscclReaders) + 2;
  const LoadedSchedule loaded = tools::load_schedule("input", file, "");
  const std::int64_t blocks = planner::allowed_blocks(loaded.programs.front(), wanted);
  if (!small(loaded, blocks)) return;
  draw(loaded, blocks);
  work %= 2 + kFormats;
  if (work == 0) {
    show(loaded, blocks);
  } else if (work == 1) {
    simulate(loaded);
  } else {
    write_exports(loaded, blocks, work - 2);
  }
}

// Changes a byte of a descriptor, and the checksums over it.
void change_byte(Input& input, std::vector<std::uint8_t>& file) {
  const std::size_t table = (kFileHeader + load_u32(&file[40]) + 7) / 8 * 8;
  const std::size_t nodes = load_u32(&file[16]);
  std::uint8_t* row = &file[table + input.byte() % nodes * kFileRow];
  std::uint8_t* bytes = &file[load_u32(row)];
  const std::size_t length = load_u32(row + 8);
  const unsigned position = input.below(65536);
  bytes[position % length] = static_cast<std::uint8_t>(input.byte());
  store_le(row + 12, crc32(0, bytes, length), 4);
  store_le(&file[12], crc32(0, &file[16], table + nodes * kFileRow - 16), 4);
}

void change(Input& input, Programs& programs) {
  const unsigned kind = input.below(4);
  OwnedProgram& program = programs[input.byte() % programs.size()];
  // Edits of claims (tests/mutation) look up references: only in a program that would be loaded.
  const bool loadable = check_program(program) == Status::kOk;
  switch (kind) {
    case 0:
      if (loadable) edit_field(input, program, mutation::Scope::kRank);
      break;
    case 1:
      for (OwnedProgram& each : programs) {
        Input same = input;
        if (check_program(each) == Status::kOk) edit_field(same, each, mutation::Scope::kShared);
      }
      (void)input.below(65536);
      break;
    case 2: set_number(input, program); break;
    default:
      for (OwnedProgram& each : programs) {
        Input same = input;
        set_number(same, each);
      }
      (void)input.word();
  }
}

const std::vector<mutation::WildBase>& valid_schedules() {
  static const std::vector<mutation::WildBase> bases = mutation::wild_bases();
  return bases;
}

// Returns the file of a valid schedule after the input's changes: of programs, then of bytes. Empty
// if no descriptor holds them.
std::vector<std::uint8_t> changed_file(Input& input) {
  const std::vector<mutation::WildBase>& bases = valid_schedules();
  const mutation::WildBase& base = bases[input.below(static_cast<unsigned>(bases.size()))];
  Programs programs = base.programs;
  for (unsigned changes = input.below(4); changes > 0; --changes) change(input, programs);
  std::vector<std::uint8_t> file = mutation::file_of(base, programs);
  while (input.left() > 0 && !file.empty()) change_byte(input, file);
  return file;
}

}  // namespace

void run(Input& input) {
  const unsigned form = input.below(4), work = input.byte(), blocks = 1 + input.below(8);
  std::vector<std::uint8_t> file;
  if (form == 0) {
    file = input.copied_rest();
    put_right(file);
  } else {
    file = changed_file(input);
  }
  if (file.empty()) return;
  expect(mutation::run_machines(file).empty(), "machines end, and keep to their buffers");
  try {
    examine(file, work, blocks);
  } catch (const tools::Failure& failure) {
    expect(!failure.line.empty() && failure.line.find('\n') == std::string::npos,
           "a refusal is one line");
  }
}

}  // namespace espalier::fuzz

// libFuzzer calls it once. The searches for valid schedules take seconds, which do not count as the
// time of the first input.
extern "C" int LLVMFuzzerInitialize(int* /*argc*/, char*** /*argv*/) {
  (void)espalier::fuzz::valid_schedules();
  return 0;
}
