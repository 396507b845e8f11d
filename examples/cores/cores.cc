// Cores that share memory, without an operating system: each runs a collective over links in that
// memory. Here the cores are threads, and a vector is summed over four of them.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <thread>
#include <vector>

#include "espalier/collectives/algorithms/algorithms.h"
#include "espalier/collectives/machine/machine.h"
#include "espalier/hal/mem/mem_endpoint.h"

namespace {

using espalier::Status;

constexpr std::uint32_t kCores = 4;
constexpr std::uint64_t kCount = 10'000;
// Up to 2 messages of 64 bytes wait in an inbox. Longer ones are read where they are.
constexpr espalier::mem::Shape kShape = {2, 64, 1, 64};
constexpr std::size_t kInboxBytes = 2048;

// Memory that all cores reach, coherent or not cached, zeros at first. On a board it is in a
// section of its own. inboxes[i][k]: what core k sends to core i.
alignas(64) std::uint8_t inboxes[kCores][kCores][kInboxBytes];
float input[kCores][kCount], output[kCores][kCount];

// What a board adds to the links through memory: a clock, a wait, and how to wake another core.
class CoreEndpoint final : public espalier::mem::MemEndpoint {
 public:
  CoreEndpoint(std::uint32_t core, espalier::mem::MemLink* links)
      : MemEndpoint(links, kCores - 1, {core, kShape.ring, kShape}) {
    for (std::uint32_t link = 0; link < kCores - 1; ++link) read_in_place(link);
  }
  [[nodiscard]] std::uint64_t now() override {  // ns; on a board the cycle counter or a timer
    return static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch() /
                                      std::chrono::nanoseconds(1));
  }
  // On a board: WFE, or nothing at all. It may return early. A thread that gave way after each poll
  // would have one poll a turn where others want to run, and a turn takes milliseconds.
  void wait(std::uint64_t /*until*/) override {
    if (++waits_ % 256 == 0) std::this_thread::sleep_for(std::chrono::microseconds(10));
  }

 private:
  void notify(std::uint32_t /*link*/) override {}  // on a board: SEV, or nothing at all
  // All cores have the same addresses, so a long message is copied once, by its receiver.
  [[nodiscard]] bool find_place(std::uint32_t /*link*/, const std::uint8_t* bytes,
                                std::uint64_t /*size*/, std::uint64_t& place) override {
    place = reinterpret_cast<std::uintptr_t>(bytes);
    return true;
  }
  [[nodiscard]] const std::uint8_t* at_place(std::uint32_t /*link*/, std::uint64_t place,
                                             std::uint64_t /*size*/) override {
    return reinterpret_cast<const std::uint8_t*>(static_cast<std::uintptr_t>(place));
  }

  std::uint32_t waits_ = 0;
};

// Element i of a core's input. A whole number, so that the sum is exact.
float value(std::uint32_t core, std::uint64_t i) { return static_cast<float>((core + i) % 1000); }

// Sums over all cores. The program comes from the core's image on a board.
Status sum(std::uint32_t core) {
  const auto program = std::make_unique<espalier::Program>();
  espalier::CollectiveParameters parameters{.ranks = kCores};
  Status status = espalier::find_algorithm(espalier::Collective::kAllreduce, "recursive-doubling")
                      ->generate(parameters, core, *program);
  if (status != Status::kOk) return status;
  espalier::Layout layout;
  status = espalier::make_layout(*program, kCount, sizeof(float), layout);
  if (status != Status::kOk) return status;
  std::vector<double> scratch(espalier::scratch_needed(*program, layout) / sizeof(double) + 1);

  espalier::mem::MemLink links[kCores - 1];
  for (std::uint32_t link = 0; link < kCores - 1; ++link) {
    const std::uint32_t peer = link < core ? link : link + 1;
    links[link] = {peer, inboxes[core][peer], inboxes[peer][core]};
  }
  CoreEndpoint endpoint(core, links);
  espalier::Machine machine;
  status = machine.init(endpoint, {});
  if (status != Status::kOk) return status;
  const espalier::Operator add{.op = espalier::Op::kSum, .type = espalier::Type::kF32};
  status = machine.start(
      *program, {input[core], output[core], scratch.data(), scratch.size() * sizeof(double)}, add,
      kCount);
  if (status != Status::kOk) return status;
  while ((status = machine.poll()) == Status::kBusy) endpoint.wait(machine.next_deadline());
  return status;
}

}  // namespace

int main() {
  if (espalier::mem::inbox_bytes(kShape) > kInboxBytes) return 1;
  for (std::uint32_t core = 0; core < kCores; ++core) {
    for (std::uint64_t i = 0; i < kCount; ++i) input[core][i] = value(core, i);
  }
  std::vector<Status> statuses(kCores);
  std::vector<std::thread> cores;
  for (std::uint32_t core = 0; core < kCores; ++core) {
    cores.emplace_back([core, &statuses] { statuses[core] = sum(core); });
  }
  for (std::thread& core : cores) core.join();
  for (std::uint32_t core = 0; core < kCores; ++core) {
    bool right = statuses[core] == Status::kOk;
    for (std::uint64_t i = 0; i < kCount && right; ++i) {
      float expected = 0;
      for (std::uint32_t from = 0; from < kCores; ++from) expected += value(from, i);
      right = output[core][i] == expected;
    }
    if (right) continue;
    std::fprintf(stderr, "cores: core %u: %s\n", core, espalier::status_name(statuses[core]));
    return 1;
  }
  std::printf("%u cores have the same correct sum of %llu floats\n", kCores,
              static_cast<unsigned long long>(kCount));
  return 0;
}
