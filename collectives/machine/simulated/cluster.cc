#include "collectives/machine/simulated/cluster.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

namespace espalier::testing {
namespace {

std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ull;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
  return x ^ (x >> 31);
}

// A floating-point value whose reduction is exact in any order.
double real(Op op, std::uint64_t random) {
  constexpr double kSpecial[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, 1.5, -2.5, 100.0};
  constexpr double kPowers[] = {1, 2, 0.5, -1};
  switch (op) {
    case Op::kSum: return static_cast<double>(random % 9) - 4;
    case Op::kProduct: return kPowers[random % 4];
    default: return kSpecial[random % 8];
  }
}

// The 16 bits of a value of real(), which both formats hold exactly.
std::uint16_t half_bits(double value, bool bf16) {
  const auto single = static_cast<float>(value);
  std::uint32_t bits;
  std::memcpy(&bits, &single, sizeof bits);
  if (bf16) return static_cast<std::uint16_t>(bits >> 16);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000);
  if (std::isnan(value)) return sign | 0x7e00;
  if (std::isinf(value)) return sign | 0x7c00;
  if (value == 0) return sign;
  return static_cast<std::uint16_t>(sign | (((bits & 0x7fffffff) >> 13) - (112 << 10)));
}

template <typename T>
void put(Bytes& bytes, std::size_t at, T value) {
  std::memcpy(bytes.data() + at, &value, sizeof value);
}

void put_element(const Operator& op, Bytes& bytes, std::size_t at, std::uint64_t random) {
  switch (op.type) {
    case Type::kF16: return put(bytes, at, half_bits(real(op.op, random), false));
    case Type::kBf16: return put(bytes, at, half_bits(real(op.op, random), true));
    case Type::kF32: return put(bytes, at, static_cast<float>(real(op.op, random)));
    case Type::kF64: return put(bytes, at, real(op.op, random));
    case Type::kF32Loc: put(bytes, at, static_cast<float>(real(op.op, random))); break;
    case Type::kF64Loc: put(bytes, at, real(op.op, random)); break;
    case Type::kI32Loc: put(bytes, at, static_cast<std::int32_t>(random % 5)); break;
    case Type::kI64Loc: put(bytes, at, static_cast<std::int64_t>(random % 5)); break;
    default:
      for (std::uint32_t byte = 0; byte < element_bytes(op); ++byte) {
        bytes[at + byte] = static_cast<std::uint8_t>(mix(random + byte));
      }
      return;
  }
  const auto index = static_cast<std::int64_t>(mix(random) % 1000);
  if (element_bytes(op) == 8) return put(bytes, at + 4, static_cast<std::int32_t>(index));
  put(bytes, at + 8, index);
}

}  // namespace

std::string describe(const Job& job, std::uint32_t ranks) {
  return std::string(collective_name(job.collective)) + " " + job.algorithm + " p " +
         std::to_string(ranks) + " root " + std::to_string(job.root) + " count " +
         std::to_string(job.count) + " " + op_name(job.op.op) + " " + type_name(job.op.type) +
         " window " + std::to_string(job.window) + " block " + std::to_string(job.block_bytes);
}

Bytes contribution(const Job& job, std::uint32_t rank) {
  const std::uint32_t size = element_bytes(job.op);
  Bytes bytes(job.count * size);
  for (std::uint64_t at = 0; at < job.count; ++at) {
    put_element(job.op, bytes, at * size, mix(mix(job.seed + 1000ull * rank) + at));
  }
  return bytes;
}

Bytes reference(const Job& job, std::uint32_t ranks) {
  if (job.collective == espalier_Collective_BROADCAST) return contribution(job, job.root);
  Bytes result = contribution(job, 0);
  const CombineFn combine = combine_function(job.op);
  for (std::uint32_t rank = 1; rank < ranks; ++rank) {
    const Bytes next = contribution(job, rank);
    combine(result.data(), result.data(), next.data(), job.count, job.op.context);
  }
  return result;
}

Cluster::Cluster(std::uint32_t ranks, const Options& options)
    : network_(options.model, sim::complete_links(ranks)), nodes_(ranks) {
  for (std::uint32_t v = 0; v < ranks; ++v) {
    Node& node = nodes_[v];
    Endpoint* endpoint = &network_.endpoint(v);
    if (options.unwilling) {
      node.endpoint = std::make_unique<UnwillingEndpoint>(*endpoint, v + 1);
      endpoint = node.endpoint.get();
    }
    node.machine = std::make_unique<Machine>();
    EXPECT_EQ(node.machine->init(*endpoint, options.config), Status::kOk);
  }
}

const Program& Cluster::program(const Job& job, std::uint32_t node) {
  const std::string key = std::string(collective_name(job.collective)) + job.algorithm + " " +
                          std::to_string(job.root) + " " + std::to_string(job.window) + " " +
                          std::to_string(job.block_bytes);
  std::vector<Program>& programs = programs_[key];
  if (programs.empty()) {
    const Algorithm* algorithm = find_algorithm(job.collective, job.algorithm);
    EXPECT_NE(algorithm, nullptr) << describe(job, ranks());
    const BlockRule blocks[] = {{0, job.block_bytes}};
    Group group;
    group.ranks = ranks();
    group.root = job.root;
    group.window = job.window;
    if (std::strcmp(job.algorithm, "binomial") != 0) {
      group.blocks = blocks;
      group.blocks_count = 1;
    }
    programs.resize(ranks());
    for (std::uint32_t v = 0; v < ranks(); ++v) {
      EXPECT_EQ(algorithm->generate(group, v, programs[v]), Status::kOk) << describe(job, ranks());
      EXPECT_EQ(check_program(programs[v]), Status::kOk) << describe(job, ranks());
    }
  }
  return programs[node];
}

void Cluster::give(std::uint32_t node, std::vector<Job> jobs) {
  Node& its = nodes_[node];
  its.jobs = std::move(jobs);
  its.done = 0;
}

void Cluster::give_all(const std::vector<Job>& jobs) {
  for (std::uint32_t v = 0; v < ranks(); ++v) give(v, jobs);
}

void Cluster::start_all() {
  for (std::uint32_t v = 0; v < ranks(); ++v) start(v);
}

void Cluster::start(std::uint32_t node) {
  Node& its = nodes_[node];
  const Job& job = its.jobs[its.done];
  const Program& runs = program(job, node);
  Layout layout;
  EXPECT_EQ(make_layout(runs, job.count, element_bytes(job.op), layout), Status::kOk);
  its.input = contribution(job, node);
  its.output.assign(its.input.size(), 0xee);
  if (job.in_place) its.output = its.input;
  its.scratch.resize((scratch_needed(runs, layout) + 15) / 16);
  Buffers buffers{its.input.data(), its.output.data(), its.scratch.data(), its.scratch.size() * 16};
  if (job.in_place) buffers.input = its.output.data();
  its.status = its.machine->start(runs, buffers, job.op, job.count);
  its.running = its.status == Status::kOk;
}

void Cluster::check(std::uint32_t node) {
  const Node& its = nodes_[node];
  const Job& job = its.jobs[its.done - 1];
  const std::string where = describe(job, ranks()) + " rank " + std::to_string(node);
  const bool root = node == job.root;
  const bool broadcast = job.collective == espalier_Collective_BROADCAST;
  const bool all = job.collective == espalier_Collective_ALLREDUCE;
  const bool has_result = all || (broadcast ? !root : root);
  if (has_result) {
    EXPECT_TRUE(its.output == reference(job, ranks())) << where;
  } else if (!job.in_place) {
    EXPECT_TRUE(its.output == Bytes(its.output.size(), 0xee)) << where << ": touched its output";
  }
  if (!job.in_place) {
    EXPECT_TRUE(its.input == contribution(job, node)) << where << ": touched its input";
  }
}

// Polls the node once, starts its next job. True if it has more to do at once.
bool Cluster::step(std::uint32_t node) {
  Node& its = nodes_[node];
  if (!its.running && its.status == Status::kOk && its.done < its.jobs.size()) start(node);
  const Status status = its.machine->poll();
  if (its.running && status != Status::kBusy) {
    its.running = false;
    its.status = status;
    its.ended_ns = network_.now_ns();
    if (status == Status::kOk) {
      ++its.done;
      check(node);
      return its.done < its.jobs.size();
    }
  } else if (status != Status::kBusy && its.status == Status::kOk) {
    its.status = status;  // heard while idle
    if (status != Status::kOk) its.ended_ns = network_.now_ns();
  }
  return its.machine->next_deadline() <= network_.now_ns();
}

void Cluster::drive(std::uint64_t until_ns, const Paused& paused) {
  for (;;) {
    bool more = false;
    bool over = network_.now_ns() >= until_ns;
    std::uint64_t next = std::numeric_limits<std::uint64_t>::max();
    for (std::uint32_t v = 0; v < ranks(); ++v) {
      if (!network_.alive(v)) continue;
      Node& its = nodes_[v];
      if (paused && paused(v)) {
        over = false;
        continue;
      }
      more = step(v) || more;
      // A machine that ends later than it hears of a failure is busy until then.
      const bool waits = its.running || its.machine->cause().status != its.status ||
                         (its.done < its.jobs.size() && its.status == Status::kOk);
      over = over && !waits;
      next = std::min(next, its.machine->next_deadline());
    }
    if (over) return;
    if (more) continue;
    if (until_ns > network_.now_ns()) next = std::min(next, until_ns);
    // A sleeper must be woken on time, though nothing happens then.
    if (paused) next = std::min(next, network_.now_ns() + 10'000);
    const bool pending = [&] {
      for (std::uint32_t v = 0; v < ranks(); ++v) {
        if (network_.alive(v) && network_.pending(v) && !(paused && paused(v))) return true;
      }
      return false;
    }();
    if (pending) continue;
    if (!network_.advance(next) && next == std::numeric_limits<std::uint64_t>::max()) {
      FAIL() << "nothing will ever happen";
    }
  }
}

}  // namespace espalier::testing
