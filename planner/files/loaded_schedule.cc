#include "planner/files/loaded_schedule.h"

#include "base/one_line.h"
#include "base/try.h"

namespace espalier::planner {
namespace {

// Why a file is refused, for a message.
std::string reason(Status status) {
  switch (status) {
    case Status::kTruncated: return "truncated: the file ends before its contents do";
    case Status::kCorrupt: return "corrupt: a checksum does not match";
    case Status::kMalformed: return "not a schedule file, or one that breaks the format's rules";
    case Status::kBadVersion: return "of a format version that this espalier does not know";
    case Status::kUnknownFeature: return "needs a feature that this espalier does not know";
    case Status::kTooLarge: return "has a larger program than this espalier has room for";
    default: return status_name(status);
  }
}

tl::unexpected<Error> refuse(const std::string& name, const std::string& why) {
  return fail("'" + one_line(name) + "': " + why + "; 'espalier compile' writes schedule files");
}

}  // namespace

Result<LoadedSchedule> open_schedule(std::string name, std::vector<std::uint8_t> bytes,
                                     const std::string& topology) {
  LoadedSchedule loaded;
  loaded.name = std::move(name);
  loaded.bytes = std::move(bytes);
  const Status status = loaded.file.open(loaded.bytes.data(), loaded.bytes.size());
  if (status != Status::kOk) return refuse(loaded.name, reason(status));
  const std::string spec(loaded.file.spec(), loaded.file.spec_size());
  auto parsed = topology::parse(spec);
  if (!parsed) return refuse(loaded.name, "in its header: " + one_line(parsed.error().message));
  loaded.topology = *std::move(parsed);
  if (loaded.topology->digest() != loaded.file.topology_digest() ||
      loaded.topology->ranks() != loaded.file.ranks()) {
    return refuse(loaded.name, "its header does not fit its topology, " + loaded.topology->title());
  }
  if (!topology.empty()) {
    ESPALIER_TRY_TO(const std::unique_ptr<topology::Topology> wanted, topology::read(topology));
    if (wanted->digest() != loaded.file.topology_digest()) {
      const std::string name = loaded.topology->title();
      const bool same = name == wanted->title();
      return refuse(loaded.name, "made for topology " + name + ", not for " +
                                     (same ? "another of this name" : wanted->title()));
    }
  }
  return loaded;
}

Result<void> decode(const LoadedSchedule& loaded, std::uint32_t node, DecodedProgram& program) {
  const Status status = loaded.file.program(node, program);
  if (status != Status::kOk) {
    return refuse(loaded.name,
                  "descriptor of node " + std::to_string(node) + ": " + reason(status));
  }
  return {};
}

Result<void> decode(const LoadedSchedule& loaded, std::uint32_t node, OwnedProgram& program) {
  const auto decoded = std::make_unique<DecodedProgram>();
  ESPALIER_TRY(decode(loaded, node, *decoded));
  program = *decoded;
  return {};
}

Result<void> check_form(const LoadedSchedule& loaded, const verify::Programs& programs) {
  const std::string wrong = verify::form_error(*loaded.topology, programs);
  if (!wrong.empty())
    return refuse(loaded.name, "not a schedule for its topology: " + one_line(wrong));
  return {};
}

Result<void> check_form(const LoadedSchedule& loaded, const verify::Programs& programs,
                        std::int64_t blocks) {
  const std::string wrong = verify::form_error(*loaded.topology, programs, blocks);
  if (!wrong.empty()) return refuse(loaded.name, "it cannot be expanded: " + one_line(wrong));
  return {};
}

verify::Programs programs_of(const LoadedSchedule& loaded) {
  return [&loaded](std::uint32_t node) -> const Program& { return loaded.programs.at(node); };
}

Result<void> check_form(const LoadedSchedule& loaded, std::int64_t blocks) {
  return check_form(loaded, programs_of(loaded), blocks);
}

Result<LoadedSchedule> load_schedule(std::string name, std::vector<std::uint8_t> bytes,
                                     const std::string& topology, const ShowProgress& progress) {
  auto opened = open_schedule(std::move(name), std::move(bytes), topology);
  if (!opened) return opened;
  LoadedSchedule& loaded = *opened;
  loaded.programs.resize(loaded.file.nodes());
  for (std::uint32_t node = 0; node < loaded.file.nodes(); ++node) {
    ESPALIER_TRY(decode(loaded, node, loaded.programs[node]));
    show(progress, static_cast<double>(node) / loaded.file.nodes());
  }
  ESPALIER_TRY(check_form(loaded, programs_of(loaded)));
  return opened;
}

}  // namespace espalier::planner
