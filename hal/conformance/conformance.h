#pragma once
// One suite for every back end: the contract of include/espalier/hal/endpoint.h as GoogleTest
// tests. Host only.
//
// A back end's test links conformance_dep and contains, in namespace espalier::conformance,
//   INSTANTIATE_TEST_SUITE_P(Tcp, ConformanceTest, testing::Values(BackEnd{"tcp", open_tcp}),
//                            back_end_name);
// One thread drives all connected endpoints.

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "espalier/hal/endpoint.h"

namespace espalier::conformance {

// The links and limits that a test requests. A back end may give another window or eager_bytes;
// tests read the actual values.
struct EndpointsSpec {
  std::vector<std::vector<std::uint32_t>> peers;  // peers[v]: node v's links, mutual
  std::uint32_t window = 8;
  std::uint32_t eager_bytes = 1024;
};

// Connected endpoints in one process.
class ConnectedEndpoints {
 public:
  virtual ~ConnectedEndpoints() = default;
  [[nodiscard]] virtual Endpoint& endpoint(std::uint32_t node) = 0;
  // Called after a poll of every endpoint found no completion; lets time pass. False: no completion
  // can follow until something is posted (only virtual time can tell; real fabrics return true).
  virtual bool progress() = 0;
};

struct BackEnd {
  std::string name;
  // Returns null on failure; the test then fails.
  std::function<std::unique_ptr<ConnectedEndpoints>(const EndpointsSpec&)> open;
};

inline std::ostream& operator<<(std::ostream& out, const BackEnd& back_end) {
  return out << back_end.name;
}

// The `name` argument of INSTANTIATE_TEST_SUITE_P.
inline std::string back_end_name(const ::testing::TestParamInfo<BackEnd>& info) {
  return info.param.name;
}

// Links node v with all others, in ascending order.
[[nodiscard]] EndpointsSpec complete(std::uint32_t nodes);
[[nodiscard]] EndpointsSpec ring(
    std::uint32_t nodes);  // link 0: the next node, link 1: the one before

class ConformanceTest : public ::testing::TestWithParam<BackEnd> {
 protected:
  static constexpr std::uint64_t kArena = 8u << 20;
  static constexpr std::uint8_t kUntouched = 0x5a;

  // Memory of one node: `in` and `out` are its prepared regions.
  struct TestNode {
    Endpoint* endpoint = nullptr;
    std::vector<std::uint8_t> in;
    std::vector<std::uint8_t> out;
    std::deque<Completion> log;  // completions polled but not yet examined
  };

  void open(const EndpointsSpec& spec);  // also prepares every node's arenas
  TestNode& node(std::uint32_t v) { return nodes_[v]; }
  std::uint64_t eager() { return nodes_[0].endpoint->eager_bytes(); }
  std::uint32_t window() { return nodes_[0].endpoint->window(); }

  // Post, and retry while the result is kTryAgain.
  Status send(std::uint32_t from, std::uint32_t link, const SendPost& post);
  Status receive(std::uint32_t to, std::uint32_t link, const ReceivePost& post);
  Status control(std::uint32_t from, std::uint32_t link, const Control& control);

  bool pump();  // polls every endpoint until empty; whether any completion was found
  bool progress() { return endpoints_->progress(); }
  // Pumps until `done`; false if no completion can follow.
  bool drive(const std::function<bool()>& done);
  // Pumps for a while in which no completion of interest should arrive.
  void idle();
  // Drives until node v has a completion of `kind`, and removes it from the log. Others stay.
  bool next(std::uint32_t v, Completion::Kind kind, Completion& completion);
  // Drives until node v's send with `context` of `size` bytes ended with kMismatch: by its first
  // completion or, up to eager_bytes, by a second one after kOk.
  bool next_send_mismatch(std::uint32_t v, std::uint32_t context, std::uint64_t size);
  std::size_t count(std::uint32_t v, Completion::Kind kind) const;

 private:
  std::unique_ptr<ConnectedEndpoints> endpoints_;
  std::vector<TestNode> nodes_;
};

// Fills with bytes that depend on `seed` and their position, so that any shift or mix-up is
// detected.
void fill(std::uint8_t* bytes, std::uint64_t size, std::uint64_t seed);
// The first position that differs from fill(seed); -1 if none.
[[nodiscard]] std::int64_t first_difference(const std::uint8_t* bytes, std::uint64_t size,
                                            std::uint64_t seed);
// The position of the first byte other than `value`; -1 if none.
[[nodiscard]] std::int64_t first_other(const std::uint8_t* bytes, std::uint64_t size,
                                       std::uint8_t value);

// A small random generator for tests, the same on all platforms.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t below(std::uint64_t limit);

 private:
  std::uint64_t state_;
};

}  // namespace espalier::conformance
