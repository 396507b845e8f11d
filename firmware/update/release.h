#pragma once
// Releases of a cluster: how nodes recognize that they run the same one, and what a node does that
// boots in the middle of an update. Freestanding; docs/updates.md proves the rule.

#include <cstdint>

#include "firmware/boot/slots.h"
#include "firmware/image/image.h"

namespace espalier {

// Computes the digest of an image's release: of its topology, release number, security counter and
// the schedules of its programs. It is the same for the images of all nodes of one release, and
// never 0. Decodes each program into `memory`. Errors: those of Image::load().
[[nodiscard]] Status release_digest(const Image& image, DecodedProgram& memory,
                                    std::uint64_t& digest);
// The same from the schedules' digests alone, in the order of the programs.
class ReleaseDigest {
 public:
  ReleaseDigest(std::uint64_t topology_digest, std::uint32_t release, std::uint32_t counter);
  void add(std::uint64_t schedule_digest);
  [[nodiscard]] std::uint64_t value() const { return digest_ == 0 ? 1 : digest_; }

 private:
  std::uint64_t digest_;
};

// The programs of an image that an update from node `root` runs, as indices among its programs.
struct UpdatePrograms {
  std::uint32_t broadcast = 0;  // from the root
  std::uint32_t scatter = 0;    // from the root
  std::uint32_t vote = 0;       // an allreduce
};
// Finds them; `root` kAnyNode: from any root. kUnsupported: the image lacks one of them.
[[nodiscard]] Status find_update_programs(const Image& image, std::uint32_t root,
                                          UpdatePrograms& programs);

// A node's releases at its boot.
struct ReleaseState {
  std::uint64_t running = 0;   // digest of the release that booted
  std::uint64_t prepared = 0;  // of the image that waits in the other slot; 0: none
  // The release that the node would run after switch_over().
  [[nodiscard]] std::uint64_t target() const { return prepared != 0 ? prepared : running; }
};

// Reads the state of the node that booted `image` from `slots`. Decodes programs into `memory`. An
// image that waits and does not pass the check counts as none. Errors: those of release_digest()
// for `image`.
[[nodiscard]] Status read_release_state(const Slots& slots, const Expectation& expectation,
                                        const Image& image, DecodedProgram& memory,
                                        ReleaseState& state);

// What a node knows of all nodes: the extremes of ReleaseState::running and target().
struct ReleaseView {
  std::uint64_t min_running = UINT64_MAX, max_running = 0;
  std::uint64_t min_target = UINT64_MAX, max_target = 0;

  void add(const ReleaseState& state);
  void add(const ReleaseView& view);
};

// What a node does once it knows all nodes' states.
enum class Resolution : std::uint8_t {
  kRun,       // all run one release: run collectives
  kWithdraw,  // the same, after Slots::withdraw(): no node has switched
  kSwitch,    // Slots::switch_over(), then restart: a node has switched
  kRestart,   // others switch: restart
  kRefuse,    // nodes of several releases, which no update can explain: install images by hand
};
// The rule.
[[nodiscard]] Resolution resolve(const ReleaseView& view, const ReleaseState& own);

}  // namespace espalier
