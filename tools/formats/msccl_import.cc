#include "tools/formats/msccl_import.h"

#include <utility>
#include <vector>

#include "collectives/lower/timed.h"
#include "espalier/collectives/schedule/programs.h"
#include "espalier/collectives/verify/verify.h"
#include "planner/files/prove.h"
#include "planner/make/plan.h"
#include "tools/common/failure.h"
#include "tools/common/output.h"
#include "tools/formats/msccl_steps.h"
#include "tools/formats/msccl_values.h"
#include "tools/report/verify_report.h"

namespace espalier::tools::formats {
namespace {

// The rank that provides or gets the whole message.
std::int64_t root_of(const std::string& path, const MscclFile& file, std::int64_t given) {
  if (!has_root(file.collective)) {
    if (given >= 0) {
      bad_input("'" + one_line(path) + "' is of " + collective_name(file.collective) +
                ", which has no root; expected no --root");
    }
    return 0;
  }
  if (given >= static_cast<std::int64_t>(file.gpus.size())) {
    bad_input("--root " + std::to_string(given) + "; '" + one_line(path) + "' has " +
              counted(file.gpus.size(), "rank"));
  }
  if (given >= 0) return given;
  const bool sends =
      file.collective == Collective::kBroadcast || file.collective == Collective::kScatter;
  std::int64_t root = -1;
  for (std::size_t rank = 0; rank < file.gpus.size(); ++rank) {
    const MscclFile::Gpu& gpu = file.gpus[rank];
    if ((sends ? gpu.input_chunks : gpu.output_chunks) == 0) continue;
    if (root >= 0) {
      bad_input("'" + one_line(path) + "': ranks " + std::to_string(root) + " and " +
                std::to_string(rank) + " could be the root; expected --root");
    }
    root = static_cast<std::int64_t>(rank);
  }
  if (root < 0) bad_input("'" + one_line(path) + "': no rank has chunks for the root's message");
  return root;
}

// Whether every message goes over one link of the topology.
bool is_among_neighbours(const topology::Topology& topology, const lower::TimedSchedule& timed) {
  for (std::uint32_t node = 0; node < timed.nodes.size(); ++node) {
    for (const lower::TimedInstance& one : timed.nodes[node]) {
      const bool sends = one.kind == ActionKind::kSend;
      if (sends && topology.capacity(node, one.peer) == 0) return false;
    }
  }
  return true;
}

// A name for people: other characters than those of ASCII become '?'.
std::string printable(const std::string& name) {
  std::string shown;
  for (const char letter : name) shown += letter >= ' ' && letter <= '~' ? letter : '?';
  return shown;
}

}  // namespace

ImportedMsccl import_msccl(const std::string& path, const MscclFile& file,
                           const topology::Topology& topology, const ImportOptions& options) {
  const std::int64_t root = root_of(path, file, options.root);
  const std::vector<MscclValue> values = msccl_values(path, file, root);
  CollectiveParameters parameters;
  parameters.ranks = topology.ranks();
  parameters.root = static_cast<std::uint32_t>(root);
  parameters.topology_digest = topology.digest();
  parameters.window = msccl_window(file);
  parameters.host_limits = options.for_hosts;
  const std::string name = printable(file.name);
  lower::TimedSchedule timed(topology.ranks());
  timed.digest = add_msccl_steps(file, values, timed);
  timed.outline.collective = file.collective;
  timed.outline.algorithm = name.c_str();
  timed.outline.segments = static_cast<std::uint32_t>(file.chunks);
  timed.share_entries = true;
  timed.outline.port_model = PortModel::kMultiport;
  // The fabric routes: every pair of ranks has a link.
  const auto pairs = or_bad_input(topology::parse("complete:" + std::to_string(topology.ranks())));
  timed.period = lower::least_period(*pairs, timed, 1);
  ImportedMsccl imported;
  imported.messages = timed.messages;
  verify::Verdict verdict;
  // In the order of ranks if that is so; otherwise for operators that commute.
  for (const bool commutes : {false, true}) {
    timed.outline.needs_commutative = commutes;
    Program common;
    if (Builder(common).begin(parameters, 0, timed.outline) == Status::kOk) {
      timed.bound =
          verify::provable_bound(topology, common, 1, is_among_neighbours(topology, timed));
    }
    auto written = lower::write_programs_for_window(parameters, timed);
    if (!written) {
      bad_input("'" + one_line(path) + "' cannot be a schedule: " + written.error().message);
    }
    const Programs programs = *std::move(written);
    verify::VerifyOptions checks;
    checks.links = false;  // the fabric routes
    verdict = verify::verify(
        topology, [&](std::uint32_t node) -> const Program& { return programs[node]; }, checks);
    if (verdict.counterexample.too_large) {
      bad_input("'" + one_line(path) +
                "' is too large to verify: " + verdict.counterexample.message);
    }
    if (!verdict.valid) {
      if (verdict.counterexample.property != verify::Property::kDataFlow) break;
      continue;
    }
    if (file.in_place && !verdict.in_place) {
      negative(
          "'" + one_line(path) +
          "' has inplace=\"1\" without outofplace=\"1\", and its schedule would read the input "
          "after the output has taken its place; expected steps that do not");
    }
    ScheduleFileWriter writer(topology.spec(), topology.digest(), topology.ranks(),
                              topology.ranks());
    Status status = Status::kOk;
    for (const Program& program : programs) {
      if (status == Status::kOk) status = writer.add(program);
    }
    if (status == Status::kOk) status = writer.finish(imported.bytes);
    if (status != Status::kOk) {
      bad_input("'" + one_line(path) + "' cannot be a schedule file: " + status_name(status));
    }
    imported.proven_for = planner::proven_for(programs.front(), verdict);
    return imported;
  }
  negative("'" + one_line(path) + "' is not valid: " + verdict.counterexample.message);
}

}  // namespace espalier::tools::formats
