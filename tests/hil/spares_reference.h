#pragma once
// What boards that lost a link or a board must compute: inputs of u32 without a pattern, summed.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/loss.h"
#include "base/splitmix64.h"
#include "espalier/collectives/schedule/program.h"
#include "espalier/internal/base/little_endian.h"
#include "espalier/internal/hal/serial/frame.h"

namespace espalier {

inline std::string loss_name(const Loss& loss) {
  if (loss.kind == Loss::Kind::kNothing) return "nothing";
  if (loss.kind == Loss::Kind::kNode) return "node " + std::to_string(loss.a);
  return "link " + std::to_string(loss.a) + " - " + std::to_string(loss.b);
}

// Without what the nodes went on, by their reports of each run. A node may have completed a run,
// and reported, before the loss: then it repeats collectives with the others, and reports nothing
// more.
class Agreement {
 public:
  struct Found {
    std::uint32_t generation = 0;
    Loss loss;
    bool operator==(const Found&) const = default;
  };
  // Before the reports of a run.
  void begin() {
    before_ = newest_;
    reports_.clear();
  }
  void take(std::uint32_t node, std::uint32_t generation, const Loss& loss) {
    const Found found = {generation, loss};
    reports_[node] = found;
    if (generation > newest_.generation) newest_ = found;
  }
  // Empty: all nodes that reported went on alike, but for those that had reported before the loss.
  [[nodiscard]] std::string complaint() const {
    for (const auto& [node, found] : reports_) {
      if (found == before_) continue;
      if (found.loss == newest_.loss && found.generation > before_.generation) continue;
      return "node " + std::to_string(node) + " goes on without " + text(found) +
             ", others without " + text(newest_);
    }
    return "";
  }
  [[nodiscard]] const Found& newest() const { return newest_; }
  // Without what the node's result is.
  [[nodiscard]] const Loss& loss_of(std::uint32_t node) const { return reports_.at(node).loss; }

 private:
  static std::string text(const Found& found) {
    return loss_name(found.loss) + " in generation " + std::to_string(found.generation);
  }
  Found before_, newest_;
  std::map<std::uint32_t, Found> reports_;
};

// Whether the frame shows that its sender runs collectives on a spare: over a link of a later
// generation it has received more messages than an agreement sends. links: of all generations
// before.
inline bool is_after_agreement(const std::uint8_t* frame, std::uint32_t links) {
  constexpr unsigned kBeyondAgreement = 8;
  return serial::get<serial::header::kChannel>(frame) >= links &&
         serial::get<serial::header::kArrived>(frame) >= kBeyondAgreement;
}

inline std::uint32_t input_at(std::uint32_t run, std::uint32_t node, std::uint64_t element) {
  return static_cast<std::uint32_t>(
      splitmix64(std::uint64_t{run} << 40 | std::uint64_t{node} << 20 | element));
}

// A collective of `count` elements, or of `count` in each rank's part.
struct ReferenceRun {
  Collective collective = Collective::kBarrier;
  std::uint32_t root = 0;
  std::uint64_t count = 0;
  std::uint32_t number = 0;
  std::uint32_t nodes = 0;
  Loss loss;  // without which it ran
};

// Compares a node's output with what the nodes that took part gave. Returns the first difference,
// or an empty text.
inline std::string wrong_result(const ReferenceRun& run, std::uint32_t node,
                                const std::uint8_t* output) {
  std::vector<std::uint32_t> members;
  for (std::uint32_t v = 0; v < run.nodes; ++v) {
    if (run.loss != Loss::node(v)) members.push_back(v);
  }
  const auto sum = [&](std::uint64_t element) {
    std::uint32_t total = 0;
    for (const std::uint32_t v : members) total += input_at(run.number, v, element);
    return total;
  };
  std::uint64_t size = run.count;
  if (run.collective == Collective::kBarrier) return "";
  if (run.collective == Collective::kAllgather) size = run.count * members.size();
  if (run.collective == Collective::kReduce && node != run.root) return "";
  if (run.collective == Collective::kBroadcast && node == run.root) return "";
  for (std::uint64_t i = 0; i < size; ++i) {
    std::uint32_t expected = 0;
    switch (run.collective.value()) {
      case Collective::kBroadcast: expected = input_at(run.number, run.root, i); break;
      case Collective::kAllgather:
        expected = input_at(run.number, members[i / run.count], i % run.count);
        break;
      case Collective::kReduceScatter: expected = sum(run.loss.dense(node) * run.count + i); break;
      default: expected = sum(i);
    }
    if (load_u32(output + 4 * i) == expected) continue;
    return "node " + std::to_string(node) + ": " + collective_name(run.collective) + ", run " +
           std::to_string(run.number) + ": element " + std::to_string(i) + " is wrong";
  }
  return "";
}

}  // namespace espalier
