#include "firmware/update/release.h"

#include "base/digest.h"

#if ESPALIER_UPDATES

namespace espalier {

ReleaseDigest::ReleaseDigest(std::uint64_t topology_digest, std::uint32_t release,
                             std::uint32_t counter)
    : digest_(digest_u64(digest_u64(kDigestSeed, topology_digest),
                         std::uint64_t{release} << 32 | counter)) {}

void ReleaseDigest::add(std::uint64_t schedule_digest) {
  digest_ = digest_u64(digest_, schedule_digest);
}

Status release_digest(const Image& image, DecodedProgram& memory, std::uint64_t& digest) {
  ReleaseDigest sum(image.topology_digest, image.release, image.counter);
  for (std::uint32_t i = 0; i < image.programs; ++i) {
    const Status status = image.load(i, memory);
    if (status != Status::kOk) return status;
    sum.add(memory.schedule_digest);
  }
  digest = sum.value();
  return Status::kOk;
}

namespace {

// Returns the first program of this collective and root (kAnyNode: any) from `from` on;
// image.programs if there is none.
std::uint32_t find_program(const Image& image, Collective collective, std::uint32_t root,
                           std::uint32_t from = 0) {
  while (from < image.programs) {
    const ProgramRow row = image.program(from);
    if (row.collective == collective && (root == kAnyNode || row.root == root)) break;
    ++from;
  }
  return from;
}

}  // namespace

Status find_update_programs(const Image& image, std::uint32_t root, UpdatePrograms& programs) {
  const std::uint32_t none = image.programs;
  programs.vote = find_program(image, Collective::kAllreduce, kAnyNode);
  if (programs.vote == none) return Status::kUnsupported;
  programs.broadcast = find_program(image, Collective::kBroadcast, root);
  while (programs.broadcast != none) {
    const std::uint32_t from = image.program(programs.broadcast).root;
    programs.scatter = find_program(image, Collective::kScatter, from);
    if (programs.scatter != none) return Status::kOk;
    programs.broadcast = find_program(image, Collective::kBroadcast, root, programs.broadcast + 1);
  }
  return Status::kUnsupported;
}

Status read_release_state(const Slots& slots, const Expectation& expectation, const Image& image,
                          DecodedProgram& memory, ReleaseState& state) {
  state = ReleaseState();
  const Status status = release_digest(image, memory, state.running);
  if (status != Status::kOk) return status;
  Image waiting;
  if (slots.find_prepared(expectation, {}, waiting) == Status::kOk &&
      release_digest(waiting, memory, state.prepared) != Status::kOk) {
    state.prepared = 0;
  }
  return Status::kOk;
}

void ReleaseView::add(const ReleaseState& state) {
  add(ReleaseView{state.running, state.running, state.target(), state.target()});
}

void ReleaseView::add(const ReleaseView& view) {
  if (view.min_running < min_running) min_running = view.min_running;
  if (view.max_running > max_running) max_running = view.max_running;
  if (view.min_target < min_target) min_target = view.min_target;
  if (view.max_target > max_target) max_target = view.max_target;
}

Resolution resolve(const ReleaseView& view, const ReleaseState& own) {
  if (view.min_running == view.max_running) {
    return own.prepared != 0 ? Resolution::kWithdraw : Resolution::kRun;
  }
  if (view.min_target != view.max_target) return Resolution::kRefuse;
  return own.prepared != 0 ? Resolution::kSwitch : Resolution::kRestart;
}

}  // namespace espalier

#endif
