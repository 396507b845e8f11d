// espalier-bench: the time and bandwidth of collectives of a program that joins its job, in the
// form of nccl-tests' table. Any launcher starts it, as it starts any other program.

#include <algorithm>
#include <cstdio>
#include <iostream>
#include <new>

#include "base/process/file_limit.h"
#include "base/version.h"
#include "communicator/bench/measurement.h"
#include "espalier/collectives/algorithms/algorithms.h"
#include "planner/files/loaded_schedule.h"
#include "tools/common/failure.h"
#include "tools/common/numbers.h"
#include "tools/common/output.h"
#include "tools/common/schedules.h"
#include "tools/options/workload_options.h"

namespace espalier::tools {
namespace {

constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 32;

struct BenchOptions {
  std::vector<std::string> collectives;
  std::vector<std::string> sizes = {"8", "1KiB", "16KiB", "64KiB", "256KiB", "1MiB", "8MiB"};
  OperatorOptions operators;
  std::uint32_t root = 0;
  std::vector<bench::Start> starts = {bench::Start::kWarm, bench::Start::kCold};
  bench::Repetitions repetitions;
  bool unchecked = false;
  std::uint32_t deadline_ms = 5000;
  JoinOptions join;
  Format format = Format::kText;
};

void add_options(Command command, BenchOptions& options) {
  command.list("--collective", options.collectives,
               "Collectives, e.g. broadcast,allreduce; default: all eleven");
  command
      .list("--bytes", options.sizes,
            std::string("Sizes of the message, or of each rank's part; ") + kByteUnits)
      .show_default("8,1KiB,16KiB,64KiB,256KiB,1MiB,8MiB");
  add_operator_options(command, options.operators);
  command.number("--root", options.root, 0, UINT32_MAX, "Root of those that have one");
  command.word(
      "--start", {"warm", "cold"},
      [&options](std::size_t index) {
        options.starts = {index == 0 ? bench::Start::kWarm : bench::Start::kCold};
      },
      "Only starts directly after a barrier, or only starts after a pause of 3 ms; default: both");
  command.number("--repeat", options.repetitions.timed, 1, 1'000'000, "Timed repetitions");
  command.number("--warmup", options.repetitions.warm_up, 0, 1'000'000,
                 "Repetitions before, which are not timed");
  command.flag("--persistent", options.repetitions.persistent,
               "Plan each call once, and time the starts of the plan");
  command.flag(
      "--shared", options.repetitions.shared,
      "Buffers in memory of espalier::allocate(), which ranks of the same host read in place");
  command.flag("--unchecked", options.unchecked,
               "Do not compare results; all repetitions then have the same input");
  command.texts("--schedule", options.join.schedules,
                "Schedule file that serves its collective and root; may be repeated");
  command.text("--model", options.join.model,
               "Model that chooses the others' algorithms ('espalier measure -o')");
  command.text("--provider", options.join.provider,
               "tcp, mem, mem+tcp or another; default: mem between ranks of one host, and the "
               "provider that FI_PROVIDER names, otherwise tcp, between hosts");
  command.number("--deadline", options.deadline_ms, 10, 3'600'000,
                 "How long an awaited rank may stay silent before it is declared dead, ms");
  command.flag("--authenticate-data", options.join.authenticate_data,
               "Authenticate the payload of long messages, too, with the job secret");
  command.flag("--progress-thread", options.join.progress_thread,
               "A thread makes progress, as in programs with non-blocking calls");
  add_format(command, options.format);
  command.set_footer(
      "Only rank 0 prints. The time of a repetition is that of "
      "the slowest rank, from its own start to its end; the table has medians in us. algbw is "
      "bytes / time, of the whole message or of all ranks' parts; busbw is algbw times the part of "
      "these bytes that every rank's link must carry, as in nccl-tests; both of warm starts, if "
      "there are any. wrong counts results that differ from a plain reference.\nExamples:\n"
      "  espalier launch -n 4 espalier-bench --collective allreduce,broadcast\n"
      "  mpirun -n 16 espalier-bench --bytes 8,64KiB,8MiB --repeat 101 --format json\n"
      "  srun --mpi=pmix -n 16 espalier-bench --start warm --persistent\n"
      "Exit status: 0 success; 1 a wrong result, or a failure; 2 bad input, or not joined.");
}

std::vector<Collective> collectives_of(const BenchOptions& options) {
  std::vector<Collective> found;
  for (const std::string& name : options.collectives) {
    found.emplace_back();
    if (!parse_collective(name.c_str(), found.back())) {
      bad_input("unknown collective '" + name + "'; 'espalier list' names all");
    }
  }
  if (!found.empty()) return found;
  return {std::begin(kAllCollectives), std::end(kAllCollectives)};
}

// The rows to measure. All ranks find the same.
std::vector<reference::ReferenceInput> rows_of(const BenchOptions& options, std::uint32_t ranks) {
  if (options.root >= ranks) {
    bad_input("--root " + std::to_string(options.root) + " is not one of " +
              counted(ranks, "rank"));
  }
  std::vector<std::uint64_t> sizes;
  for (const std::string& size : options.sizes)
    sizes.push_back(byte_count("--bytes", size, kMaxBytes));
  std::vector<reference::ReferenceInput> rows;
  bool combines_any = false, has_any_root = false;
  for (const Collective collective : collectives_of(options)) {
    reference::ReferenceInput what{
        .collective = collective, .ranks = ranks, .root = has_root(collective) ? options.root : 0};
    has_any_root = has_any_root || has_root(collective);
    if (reference::combines(collective)) {
      combines_any = true;
      what.op = or_bad_input(reference::parse_operator(options.operators.op_or_default(),
                                                       options.operators.type_or_default()));
    }
    for (const std::uint64_t bytes : sizes) {
      what.bytes = collective == Collective::kBarrier ? 0 : bytes;
      or_bad_input(reference::check_supported(what));
      rows.push_back(what);
      if (collective == Collective::kBarrier) break;
    }
  }
  if (!combines_any && !(options.operators.op.empty() && options.operators.type.empty())) {
    bad_input("none of the collectives combines; expected no --op and no --type");
  }
  if (!has_any_root && options.root != 0) {
    bad_input("none of the collectives has a root; expected no --root");
  }
  return rows;
}

// Checks that each of --schedule serves a row.
void check_schedules(const std::vector<std::string>& paths,
                     const std::vector<reference::ReferenceInput>& rows) {
  for (const std::string& path : paths) {
    const std::string bytes = read_given(path, FileKind::kSchedule);
    const planner::LoadedSchedule loaded = load_schedule(path, {bytes.begin(), bytes.end()}, "");
    const Program& first = loaded.programs.front();
    if (std::any_of(rows.begin(), rows.end(), [&first](const reference::ReferenceInput& row) {
          return row.collective == first.collective && row.root == first.root;
        })) {
      continue;
    }
    bad_input("--schedule '" + one_line(path) + "': " + collective_name(first.collective) +
              (has_root(first.collective) ? " with root " + std::to_string(first.root) : "") +
              " is not measured; expected another --collective" +
              (has_root(first.collective) ? " or --root" : "") + ", or no such schedule");
  }
}

double bandwidth(const bench::Row& row) {
  const double seconds = median(row.warm.empty() ? row.cold : row.warm);
  return seconds > 0 ? static_cast<double>(bench::moved_bytes(row.what)) / seconds : 0;
}

std::string time_text(const std::vector<double>& seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", median(seconds) * 1e6);
  return seconds.empty() ? "-" : text;
}

void print_row(const bench::Row& row) {
  const double bytes_per_second = bandwidth(row);
  const bool combines = reference::combines(row.what.collective);
  std::printf("%12llu  %-14s %-9s %-7s %4u  %-20s %12s %12s %9.3f %9.3f %6llu\n",
              static_cast<unsigned long long>(row.what.bytes), collective_name(row.what.collective),
              combines ? type_name(row.what.op.type) : "bytes",
              combines ? op_name(row.what.op.op) : "-", row.what.root, row.algorithm.c_str(),
              time_text(row.warm).c_str(), time_text(row.cold).c_str(), bytes_per_second / 1e9,
              bytes_per_second * bench::bus_share(row.what.collective, row.what.ranks) / 1e9,
              static_cast<unsigned long long>(row.wrong));
  std::fflush(stdout);
}

Json json_of(const bench::Row& row) {
  Json json = {{"collective", collective_name(row.what.collective)},
               {"ranks", row.what.ranks},
               {"root", row.what.root},
               {"bytes", row.what.bytes},
               {"algorithm", row.algorithm},
               {"wrong", row.wrong}};
  if (reference::combines(row.what.collective)) {
    json["op"] = op_name(row.what.op.op);
    json["type"] = type_name(row.what.op.type);
  }
  if (!row.warm.empty()) json["warm_s"] = row.warm;
  if (!row.cold.empty()) json["cold_s"] = row.cold;
  json["algbw_bytes_per_s"] = bandwidth(row);
  json["busbw_bytes_per_s"] =
      bandwidth(row) * bench::bus_share(row.what.collective, row.what.ranks);
  return json;
}

// The row, or the failure. A dead link may be a rank that only had no processor: its deadline is
// named.
bench::Row or_failure(const Communicator& world, const BenchOptions& options,
                      Result<bench::Row> row) {
  if (row) return *std::move(row);
  const bool is_silence = world.cause().status == Status::kDeadLink;
  negative(row.error().message + (is_silence ? "; a rank that says nothing for " +
                                                   seconds_text(options.deadline_ms / 1e3) +
                                                   " counts as dead (--deadline)"
                                             : ""));
}

void run(BenchOptions& options) {
  options.repetitions.checked = !options.unchecked;
  options.join.deadline = std::chrono::milliseconds(options.deadline_ms);
  auto world = or_bad_input(join(options.join));
  const std::vector<reference::ReferenceInput> rows = rows_of(options, world.size());
  check_schedules(options.join.schedules, rows);
  const bool prints = world.rank() == 0;
  const bool is_text = options.format == Format::kText;
  if (prints && is_text) {
    std::printf("# %s; median of %s, us; GB/s of 1e9 bytes\n",
                counted(world.size(), "rank").c_str(),
                counted(options.repetitions.timed, "repetition").c_str());
    std::printf("%12s  %-14s %-9s %-7s %4s  %-20s %12s %12s %9s %9s %6s\n", "bytes", "collective",
                "type", "op", "root", "algorithm", "warm us", "cold us", "algbw", "busbw", "wrong");
  }
  Json all = Json::array();
  std::uint64_t wrong = 0;
  for (const reference::ReferenceInput& what : rows) {
    const bench::Row row = or_failure(
        world, options, bench::measure(world, what, options.starts, options.repetitions));
    wrong += row.wrong;
    if (prints && is_text) print_row(row);
    if (prints && !is_text) all.push_back(json_of(row));
  }
  if (prints && !is_text) print_json(all);
  if (prints && wrong != 0) negative(counted(wrong, "wrong result"));
}

int complain(int exit_status, const std::string& line) {
  std::fflush(stdout);
  std::fprintf(stderr, "espalier-bench: %s\n", one_line(line).c_str());
  return exit_status;
}

}  // namespace
}  // namespace espalier::tools

int main(int argc, char** argv) {
  espalier::fail_beyond_file_limit();
  using namespace espalier::tools;
  try {
    BenchOptions options;
    CommandLine line("espalier-bench", "The time of collectives of a program that joins its job",
                     espalier::kVersion);
    add_options(line.program(), options);
    line.program().set_action([&options] { run(options); });
    line.run(argc, argv);
    if (std::fflush(stdout) != 0 || !std::cout.flush()) {
      return complain(kBadInput, "cannot write to stdout");
    }
    return 0;
  } catch (const Failure& failure) {
    return complain(failure.exit_status, failure.line);
  } catch (const std::bad_alloc&) {
    return complain(kBadInput, "this needs more memory than there is");
  }
}
