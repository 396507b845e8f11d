#include "firmware/node/schedule_files.h"

#include <algorithm>
#include <memory>

#include "base/counted.h"
#include "base/digest.h"
#include "base/read_file.h"
#include "base/try.h"
#include "collectives/schedule/selection_file.h"

namespace espalier::node {
namespace {

const std::uint8_t* bytes_of(const std::string& contents) {
  return reinterpret_cast<const std::uint8_t*>(contents.data());
}

// Returns what to do about a descriptor that does not load.
const char* file_remedy(Status status) {
  switch (status) {
    case Status::kTruncated: return "the file ends too early; copy or compile it again";
    case Status::kCorrupt: return "a checksum does not match; copy or compile it again";
    case Status::kBadVersion: return "compile it with this release";
    case Status::kUnknownFeature: return "compile it for this node's release";
    case Status::kTooLarge:
      return "it needs more than this node's limits (include/espalier/internal/base/limits.h)";
    case Status::kMalformed:
      return "it is not a schedule file; expected the output of `espalier compile`";
    case Status::kWrongTopology: return "compile it for this node's topology";
    case Status::kWrongNode: return "give the node's own number";
    default: return "see the status";
  }
}

// Returns the digest of a canonical specification, as Topology::digest() computes it.
std::uint64_t topology_digest(const char* spec, std::size_t size) {
  const std::uint64_t digest = digest_bytes(kDigestSeed, spec, size);
  return digest == 0 ? 1 : digest;
}

// Whether the file's topology digest belongs to its specification, which nodes do not parse.
bool is_specified(const ScheduleFile& file) {
  return topology_digest(file.spec(), file.spec_size()) == file.topology_digest();
}

// Whether the file is this node's, before its descriptor is looked at.
Result<void> check_file(const std::string& path, const BootOptions& options, std::uint32_t node,
                        const ScheduleFile& file) {
  if (!is_specified(file)) {
    return fail(path +
                " is not consistent: its topology's digest does not belong to its specification; " +
                "compile it again");
  }
  if (!options.topology.empty() &&
      topology_digest(options.topology.data(), options.topology.size()) != file.topology_digest()) {
    return fail(path + " was compiled for the topology " +
                std::string(file.spec(), file.spec_size()) + ", this node belongs to " +
                options.topology + "; " + file_remedy(Status::kWrongTopology));
  }
  if (node < file.nodes()) return {};
  return fail(path + " has no node " + std::to_string(node) + ": its nodes are 0 to " +
              std::to_string(file.nodes() - 1));
}

Result<void> check_loaded(const std::string& path, std::uint32_t node, Status status) {
  if (status == Status::kOk) return {};
  return fail("cannot load node " + std::to_string(node) + "'s descriptor from " + path + ": " +
              status_name(status) + "; " + file_remedy(status));
}

// Adds a program that `load` decodes.
template <typename Load>
Result<void> add_program(const std::string& path, std::uint32_t node, const Load& load,
                         Programs& programs) {
  if (programs.count == kMaxPrograms) {
    return fail(path + " has more programs than this node has room for: " +
                std::to_string(kMaxPrograms) + " (ESPALIER_MAX_PROGRAMS)");
  }
  ESPALIER_TRY(check_loaded(path, node, load(programs.programs[programs.count])));
  ++programs.count;
  programs.sources.push_back(path);
  return {};
}

Result<void> load_selection(const std::string& path, const BootOptions& options, std::uint32_t node,
                            const std::string& contents, Programs& programs) {
  const auto file = std::make_unique<SelectionFile>();
  if (auto opened = check_loaded(path, node, file->open(bytes_of(contents), contents.size()));
      !opened) {
    return opened;
  }
  NodeSelection selection{file->selected(), programs.count};
  for (std::uint32_t i = 0; i < file->schedules(); ++i) {
    auto added = check_file(path, options, node, file->schedule(i));
    if (added) {
      added = add_program(
          path, node, [&](DecodedProgram& out) { return file->program(i, node, out); }, programs);
    }
    if (!added) return added;
  }
  if (programs.selections_count == kMaxSelections) {
    return fail(path + " is one selection more than this node has room for: " +
                std::to_string(kMaxSelections) + " (ESPALIER_MAX_SELECTIONS)");
  }
  programs.selections[programs.selections_count++] = selection;
  return {};
}

Result<void> load_file(const std::string& path, const BootOptions& options, std::uint32_t node,
                       Programs& programs) {
  // A copy: what is checked is what is decoded, even if the file changes meanwhile.
  auto read = read_file(path, FileKind::kSchedule);
  if (!read) return fail("the schedule: " + read.error().message);
  const std::string& contents = programs.contents.emplace_back(*std::move(read));
  if (is_selection_file(bytes_of(contents), contents.size())) {
    return load_selection(path, options, node, contents, programs);
  }
  ScheduleFile file;
  auto loaded = check_loaded(path, node, file.open(bytes_of(contents), contents.size()));
  if (loaded) loaded = check_file(path, options, node, file);
  if (!loaded) return loaded;
  return add_program(
      path, node, [&](DecodedProgram& out) { return file.program(node, out); }, programs);
}

}  // namespace

Result<void> load_programs(const BootOptions& options, std::uint32_t node, Programs& programs) {
  for (const std::string& path : options.schedules) {
    ESPALIER_TRY(load_file(path, options, node, programs));
  }
  for (std::uint32_t k = 0; k < programs.count; ++k) {
    const Program& program = programs.programs[k];
    for (std::uint32_t i = 0; i < links_count(program); ++i) {
      programs.peers.push_back(peer_of(program, i));
    }
  }
  std::sort(programs.peers.begin(), programs.peers.end());
  programs.peers.erase(std::unique(programs.peers.begin(), programs.peers.end()),
                       programs.peers.end());
  if (options.links.empty() && programs.peers.size() > kMaxLinks) {
    return fail("the schedules need " + counted(programs.peers.size(), "link") + ", node " +
                std::to_string(node) + " has room for " + std::to_string(kMaxLinks) +
                " (ESPALIER_MAX_LINKS)");
  }
  return {};
}

}  // namespace espalier::node
