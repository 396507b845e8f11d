#include "collectives/predict/model.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <tuple>
#include <utility>

#include "base/digest.h"
#include "espalier/internal/base/assert.h"

namespace espalier::predict {
namespace {

constexpr std::uint64_t kFsPerPs = 1000;
constexpr std::uint64_t kMicrosecond = 1'000'000;  // ps
constexpr std::uint64_t kMemoryCopyFs = 60'000;    // 17 GB/s

// A value of `unit` per second in whole units, within 0 .. most.
std::uint64_t whole(double value, double unit, std::uint64_t most) {
  const double scaled = std::round(value * unit);
  ESPALIER_ASSERT(scaled >= 0 && scaled <= static_cast<double>(most));
  return static_cast<std::uint64_t>(scaled);
}

LinkCost one_line(std::uint64_t alpha_ps, std::uint64_t beta_fs) {
  return LinkCost{.lines = {{0, alpha_ps, beta_fs, {}, {}}}};
}

}  // namespace

Picoseconds times(Picoseconds time, std::uint64_t factor) {
  std::uint64_t product = 0;
  const bool overflows = __builtin_mul_overflow(time, factor, &product);
  return overflows ? kMaxPrediction : std::min<Picoseconds>(product, kMaxPrediction);
}

Picoseconds per_byte(std::uint64_t fs_per_byte, std::uint64_t bytes) {
  return std::min(
      times(fs_per_byte, bytes / kFsPerPs) + times(fs_per_byte, bytes % kFsPerPs) / kFsPerPs,
      kMaxPrediction);
}

static Picoseconds time_on(const CostLine& line, std::uint64_t bytes) {
  return std::min(line.alpha_ps + per_byte(line.beta_fs, bytes), kMaxPrediction);
}

const CostLine& LinkCost::line(std::uint64_t bytes) const {
  ESPALIER_ASSERT(!lines.empty() && lines.front().from_bytes == 0);
  std::size_t last = 0;
  while (last + 1 < lines.size() && lines[last + 1].from_bytes <= bytes) ++last;
  return lines[last];
}

Picoseconds LinkCost::send_time(std::uint64_t bytes) const { return time_on(line(bytes), bytes); }

Picoseconds LinkCost::least_time(std::uint64_t bytes, std::uint64_t block,
                                 std::uint64_t messages) const {
  Picoseconds alpha = kMaxPrediction, by_longest = kMaxPrediction;
  std::uint64_t beta = kMaxFsPerByte;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    alpha = std::min<Picoseconds>(alpha, lines[i].alpha_ps);
    beta = std::min(beta, lines[i].beta_fs);
    // The longest message of a line takes least time per byte.
    const bool is_last = i + 1 == lines.size();
    const std::uint64_t longest = is_last ? bytes : std::min(lines[i + 1].from_bytes - 1, bytes);
    if (longest == 0 || longest < std::min(block, bytes)) continue;
    const Picoseconds longest_fs = times(send_time(longest), kFsPerPs);
    by_longest = std::min(by_longest, per_byte(longest_fs / longest, bytes));
  }
  const Picoseconds by_parts = times(alpha, messages) + per_byte(beta, bytes);
  if (by_longest == kMaxPrediction) return by_parts;
  return std::min(std::max(by_parts, by_longest), kMaxPrediction);
}

Picoseconds LinkCost::latency(std::uint64_t bytes) const {
  if (lambda_permille == 1000) return 0;
  const Picoseconds send = send_time(bytes);
  const std::uint32_t more = lambda_permille - 1000;
  return std::min(times(send / 1000, more) + send % 1000 * more / 1000, kMaxPrediction);
}

Picoseconds Model::combine_time(const Operator& op, std::uint64_t bytes) const {
  for (const CombineCost& known : combines) {
    if (known.op == op.op && known.type == op.type) return per_byte(known.gamma_fs, bytes);
  }
  return per_byte(gamma_fs, bytes);
}

Picoseconds Model::overhead_time(std::uint64_t bytes) const {
  return std::min(overhead_ps + per_byte(overhead_fs, bytes), kMaxPrediction);
}

std::uint32_t Model::ranks_per_core(std::uint32_t ranks) const {
  if (cores == 0 || ranks <= cores) return 1;
  return (ranks + cores - 1) / cores;
}

const Tuning::Factor* Tuning::Size::factor(const std::string& candidate) const {
  const auto found = std::find_if(factors.begin(), factors.end(), [&](const Factor& factor) {
    return factor.candidate == candidate;
  });
  return found == factors.end() ? nullptr : &*found;
}

std::uint32_t Tuning::permille(const std::string& candidate, std::size_t at) const {
  if (const Factor* const own = sizes[at].factor(candidate)) return own->permille;
  std::uint32_t most = 1;
  for (const Factor& factor : sizes[at].factors) most = std::max(most, factor.permille);
  for (std::size_t distance = 1; distance < sizes.size(); ++distance) {
    const Factor* below = at >= distance ? sizes[at - distance].factor(candidate) : nullptr;
    const Factor* above =
        at + distance < sizes.size() ? sizes[at + distance].factor(candidate) : nullptr;
    if (below != nullptr) most = std::max(most, below->permille);
    if (above != nullptr) most = std::max(most, above->permille);
    if (below != nullptr || above != nullptr) break;
  }
  return most;
}

Picoseconds Tuning::tuned(const std::string& candidate, std::uint64_t bytes,
                          Picoseconds predicted) const {
  std::size_t high = 0;  // the first size above
  while (high < sizes.size() && sizes[high].bytes <= bytes) ++high;
  const std::size_t low = high == 0 ? 0 : high - 1;
  std::int64_t permille = this->permille(candidate, low);
  if (low < high && high < sizes.size()) {
    // The position between the sizes in 2^20ths: the product fits.
    constexpr std::uint64_t kParts = 1 << 20;
    const std::uint64_t gap = sizes[high].bytes - sizes[low].bytes;
    const std::uint64_t above = bytes - sizes[low].bytes;
    const std::uint64_t part = gap / kParts;
    const std::uint64_t position = part == 0 ? above * kParts / gap : above / part;
    permille += (std::int64_t{this->permille(candidate, high)} - permille) *
                static_cast<std::int64_t>(std::min(position, kParts)) / std::int64_t{kParts};
  }
  const auto factor = static_cast<std::uint64_t>(permille);
  return std::min(times(predicted / 1000, factor) + predicted % 1000 * factor / 1000,
                  kMaxPrediction);
}

const Tuning* Model::tuning(const std::string& topology, const std::string& collective) const {
  const auto found = std::find_if(tunings.begin(), tunings.end(), [&](const Tuning& one) {
    return one.topology == topology && one.collective == collective;
  });
  return found == tunings.end() ? nullptr : &*found;
}

static std::uint64_t digest_text(std::uint64_t digest, const std::string& text) {
  return digest_bytes(digest_u64(digest, text.size()), text.data(), text.size());
}

static std::uint64_t digest_tuning(std::uint64_t digest, const Tuning& tuning) {
  digest = digest_text(digest_text(digest, tuning.topology), tuning.collective);
  for (const Tuning::Size& size : tuning.sizes) {
    digest = digest_u64(digest_u64(digest, size.bytes), size.factors.size());
    std::vector<Tuning::Factor> sorted = size.factors;  // their order decides nothing
    std::sort(sorted.begin(), sorted.end(),
              [](const auto& a, const auto& b) { return a.candidate < b.candidate; });
    for (const Tuning::Factor& factor : sorted) {
      digest = digest_u64(digest_text(digest, factor.candidate), factor.permille);
    }
  }
  return digest;
}

std::uint64_t Model::digest() const {
  std::uint64_t digest = kDigestSeed;
  for (const LinkCost& link : links) {
    digest = digest_u64(digest, link.lines.size());
    for (const CostLine& line : link.lines) {
      digest = digest_u64(digest, line.from_bytes);
      digest = digest_u64(digest, line.alpha_ps);
      digest = digest_u64(digest, line.beta_fs);
    }
    digest = digest_u64(digest, link.lambda_permille);
    if (link.burst_bytes > 0) digest = digest_u64(digest, link.burst_bytes);
  }
  std::vector<CombineCost> sorted = combines;  // their order decides nothing
  std::sort(sorted.begin(), sorted.end(), [](const CombineCost& a, const CombineCost& b) {
    return a.op != b.op ? a.op < b.op : a.type < b.type;
  });
  for (const CombineCost& combine : sorted) {
    digest = digest_u64(digest, static_cast<std::uint64_t>(combine.op));
    digest = digest_u64(digest, static_cast<std::uint64_t>(combine.type));
    digest = digest_u64(digest, combine.gamma_fs);
  }
  digest = digest_u64(digest, gamma_fs);
  digest = digest_u64(digest, overhead_ps);
  digest = digest_u64(digest, cores);
  // Models without these keep their digests.
  if (overhead_fs + wake_ps > 0) digest = digest_u64(digest_u64(digest, overhead_fs), wake_ps);
  if (copy_fs > 0) digest = digest_u64(digest, copy_fs);
  if (crowding.known()) {
    digest = digest_u64(digest_u64(digest, crowding.fan_in_permille), crowding.carried_permille);
    digest = digest_u64(digest, crowding.max_block_bytes);
  }
  std::vector<const Tuning*> all;  // their order decides nothing
  all.reserve(tunings.size());
  for (const Tuning& tuning : tunings) all.push_back(&tuning);
  std::sort(all.begin(), all.end(), [](const Tuning* a, const Tuning* b) {
    return std::tie(a->topology, a->collective) < std::tie(b->topology, b->collective);
  });
  for (const Tuning* tuning : all) digest = digest_tuning(digest, *tuning);
  return digest == 0 ? 1 : digest;
}

Model default_model() {
  Model model;
  using topology::LinkClass;
  const auto set = [&model](LinkClass link_class, std::uint64_t alpha_ps, std::uint64_t beta_fs) {
    model.links[static_cast<std::size_t>(link_class)] = one_line(alpha_ps, beta_fs);
  };
  set(LinkClass::kFabric, 20 * kMicrosecond, 1'000'000);    // 1 GB/s over a kernel's TCP
  set(LinkClass::kOnChip, kMicrosecond / 10, 250'000);      // 4 GB/s
  set(LinkClass::kMemory, kMicrosecond, 200'000);           // 5 GB/s: copied in and out
  set(LinkClass::kSerial, 100 * kMicrosecond, 86'805'556);  // 115200 baud, 10 bits per byte
  model.found_by = "default constants";
  return model;
}

// Both ends copy at the same time. Where ranks share processors, it is these that take the time;
// otherwise it is as if the link did. There a rank waits for its turn whenever it waits for a
// message: with o and the time to notice one that eight ranks on two processors have, the fastest
// candidates are predicted to be the fastest.
Model memory_model(std::uint32_t cores, std::uint32_t ranks) {
  Model model = default_model();
  const bool shares = ranks > cores;
  model.links.fill(one_line(kMicrosecond / 5, shares ? 0 : kMemoryCopyFs));
  model.overhead_ps = shares ? kMicrosecond * 2 / 5 : kMicrosecond / 5;
  model.overhead_fs = shares ? kMemoryCopyFs : 0;
  model.copy_fs = kMemoryCopyFs;
  model.gamma_fs = kMemoryCopyFs;
  model.cores = cores;
  model.wake_ps = 10 * kMicrosecond;
  model.found_by = "default constants of memory";
  return model;
}

// A sixth of a short message's time is the network's, as `espalier measure` finds over tcp; the
// rest is spent at both ends, for each block of a pipeline, too. Where the hosts share processors,
// these do the work of all messages in that time, and a message alone takes as long again until its
// receiver has its turn: so sixteen hosts on two processors took fewer messages instead of fewer
// steps (allreduce of 8 B by dual-root 0.80 ms, by recursive-doubling 0.97). The crowding is fitted
// to eight hosts with links of 100 Mbit/s (tests/bench/lab.sh): there a chain broadcast was faster
// than circulant and two-tree ones, which have fewer steps, an all-to-all in short blocks faster
// than one in whole messages, and a scatter that forwards slower than one that does not.
Model network_model(const NetworkCost& cost) {
  constexpr std::uint64_t kLeastBlockBytes = 1024, kMostBlockBytes = 1 << 20;
  const Picoseconds message_ps = cost.message_ps;
  const std::uint64_t byte_fs = cost.byte_fs;
  const bool shares = cost.shared_cores != 0;
  ESPALIER_ASSERT(!shares || cost.ranks > cost.shared_cores);
  const Picoseconds work_ps =
      shares ? times(message_ps, cost.shared_cores) / cost.ranks : message_ps;
  Model model = default_model();
  model.cores = cost.shared_cores;
  model.links.fill(one_line(shares ? work_ps : message_ps / 6, byte_fs));
  for (LinkCost& link : model.links) link.burst_bytes = cost.burst_bytes;
  model.links[static_cast<std::size_t>(topology::LinkClass::kMemory)] =
      one_line(kMicrosecond / 5, kMemoryCopyFs);
  model.overhead_ps = work_ps * 5 / 12;
  const std::uint64_t while_four_start = std::min(message_ps, kMaxTimePs / kFsPerPs) * 4 *
                                         kFsPerPs / std::max<std::uint64_t>(1, byte_fs);
  // With bursts of 10,000 bytes, blocks of 4 KiB are faster than those of 2 KiB and of 8 KiB.
  constexpr std::uint64_t kLeastOfBurst = 4096;
  const std::uint64_t most = cost.burst_bytes == 0 ? kMostBlockBytes : cost.burst_bytes / 4 * 3;
  const std::uint64_t block =
      std::min(std::bit_ceil(std::clamp(while_four_start, kLeastBlockBytes, kMostBlockBytes)),
               std::bit_floor(std::clamp(most, kLeastOfBurst, kMostBlockBytes)));
  model.crowding = {400, 300, static_cast<std::uint32_t>(block)};
  model.found_by = "messages between the hosts";
  return model;
}

Model line_model(double alpha, double beta) {
  Model model = default_model();
  model.links.fill(one_line(whole(alpha, 1e12, kMaxTimePs), whole(beta, 1e15, kMaxFsPerByte)));
  model.is_given.fill(true);
  model.found_by = "alpha and beta as given";
  return model;
}

namespace {

// The cost of the class of the topology's links that is before all others.
template <typename Before>
const LinkCost& first_of(const Model& model, const topology::Topology& topology,
                         const Before& before) {
  const LinkCost* first = nullptr;
  for (const topology::LinkClass link_class : topology.link_classes()) {
    const LinkCost& cost = model.cost(link_class);
    if (first == nullptr || before(cost, *first)) first = &cost;
  }
  return first == nullptr ? model.cost(topology::LinkClass::kFabric) : *first;
}

}  // namespace

const LinkCost& slowest(const Model& model, const topology::Topology& topology,
                        std::uint64_t bytes) {
  return first_of(model, topology, [bytes](const LinkCost& a, const LinkCost& b) {
    return a.send_time(bytes) > b.send_time(bytes);
  });
}

const LinkCost& fastest(const Model& model, const topology::Topology& topology,
                        std::uint64_t bytes) {
  return first_of(model, topology, [bytes](const LinkCost& a, const LinkCost& b) {
    return a.send_time(bytes) < b.send_time(bytes);
  });
}

namespace {

// The length from which on `other` takes longer than `slower`, about; none: the greatest number.
std::uint64_t crossing(const CostLine& slower, const CostLine& other) {
  if (other.beta_fs <= slower.beta_fs || other.alpha_ps >= slower.alpha_ps) return UINT64_MAX;
  return times(slower.alpha_ps - other.alpha_ps, kFsPerPs) / (other.beta_fs - slower.beta_fs);
}

}  // namespace

LinkCost pipeline_cost(const Model& model, const topology::Topology& topology, std::uint64_t bytes,
                       std::uint32_t ranks_on_host) {
  LinkCost cost = slowest(model, topology, bytes);
  const std::uint32_t times_spent = 2 * model.ranks_per_core(ranks_on_host);
  const CostLine least = {0,
                          times(model.overhead_ps, times_spent),
                          std::min(times(model.overhead_fs, times_spent), kMaxFsPerByte),
                          {},
                          {}};
  const std::vector<CostLine> lines = std::exchange(cost.lines, {});
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::uint64_t end = i + 1 < lines.size() ? lines[i + 1].from_bytes : UINT64_MAX;
    for (std::uint64_t from = lines[i].from_bytes; from < end;) {
      const bool link_is_slower = time_on(lines[i], from) >= time_on(least, from);
      const CostLine& slower = link_is_slower ? lines[i] : least;
      const CostLine& other = link_is_slower ? least : lines[i];
      cost.lines.push_back({from, slower.alpha_ps, slower.beta_fs, {}, {}});
      from = std::max(from + 1, crossing(slower, other));
    }
  }
  return cost;
}

LinkCost step_cost(const Model& model, const topology::Topology& topology, std::uint64_t bytes,
                   std::uint32_t ranks_on_host) {
  LinkCost cost = slowest(model, topology, bytes);
  const std::uint32_t times_spent = 2 * model.ranks_per_core(ranks_on_host);
  const Picoseconds both =
      times(model.overhead_ps, times_spent) + (times_spent > 2 ? model.wake_ps : 0);
  for (CostLine& line : cost.lines) {
    line.alpha_ps = std::min(line.alpha_ps + both, kMaxPrediction);
    line.beta_fs = std::min(line.beta_fs + times(model.overhead_fs, times_spent), kMaxFsPerByte);
  }
  return cost;
}

}  // namespace espalier::predict
