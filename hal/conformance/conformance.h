#pragma once
// One suite for every back end: what include/espalier/hal/endpoint.h promises, as GoogleTest tests.
// Host only.
//
// A back end's test links conformance_dep and says, at namespace espalier::conformance,
//   INSTANTIATE_TEST_SUITE_P(Tcp, ConformanceTest, testing::Values(BackEnd{"tcp", open_tcp}),
//                            back_end_name);
// One thread drives all endpoints of a cluster.

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

// What a test asks for. A back end may give another window or eager_bytes: tests read them back.
struct ClusterSpec {
  std::vector<std::vector<std::uint32_t>> peers;  // peers[v]: node v's links, mutual
  std::uint32_t window = 8;
  std::uint32_t eager_bytes = 1024;
};

// Connected endpoints in one process.
class Cluster {
 public:
  virtual ~Cluster() = default;
  [[nodiscard]] virtual Endpoint& endpoint(std::uint32_t node) = 0;
  // Called when polling every endpoint brought nothing: lets time pass. False: nothing will come
  // before something is posted (virtual time knows; real fabrics return true).
  virtual bool progress() = 0;
};

struct BackEnd {
  std::string name;
  std::function<std::unique_ptr<Cluster>(const ClusterSpec&)> open;  // null: the test fails
};

inline std::ostream& operator<<(std::ostream& out, const BackEnd& back_end) {
  return out << back_end.name;
}

// The `name` argument of INSTANTIATE_TEST_SUITE_P.
inline std::string back_end_name(const testing::TestParamInfo<BackEnd>& info) {
  return info.param.name;
}

// Node v is linked with all others, in ascending order.
[[nodiscard]] ClusterSpec complete(std::uint32_t nodes);
[[nodiscard]] ClusterSpec ring(
    std::uint32_t nodes);  // link 0: the next node, link 1: the one before

class ConformanceTest : public testing::TestWithParam<BackEnd> {
 protected:
  static constexpr std::uint64_t kArena = 8u << 20;
  static constexpr std::uint8_t kUntouched = 0x5a;

  // Memory of one node: `in` and `out` are its prepared regions.
  struct Node {
    Endpoint* endpoint = nullptr;
    std::vector<std::uint8_t> in;
    std::vector<std::uint8_t> out;
    std::deque<Completion> log;  // completions polled and not yet looked at
  };

  void open(const ClusterSpec& spec);  // and prepares every node's arenas
  Node& node(std::uint32_t v) { return nodes_[v]; }
  std::uint64_t eager() { return nodes_[0].endpoint->eager_bytes(); }
  std::uint32_t window() { return nodes_[0].endpoint->window(); }

  // Posts, with patience for kTryAgain.
  Status send(std::uint32_t from, std::uint32_t link, const SendPost& post);
  Status receive(std::uint32_t to, std::uint32_t link, const ReceivePost& post);
  Status control(std::uint32_t from, std::uint32_t link, const Control& control);

  bool pump();  // polls every endpoint until empty; whether anything came
  bool progress() { return cluster_->progress(); }
  // Pumps until `done`; false if nothing will come any more.
  bool drive(const std::function<bool()>& done);
  // Pumps for a while in which nothing of interest should happen.
  void idle();
  // Drives until node v has a completion that is of `kind`, takes it out of its log. Others stay.
  bool next(std::uint32_t v, Completion::Kind kind, Completion& completion);
  // Drives until node v's send with `cookie` of `size` bytes ended with kMismatch: its first
  // completion, or, up to eager_bytes, a second one after kOk.
  bool next_send_mismatch(std::uint32_t v, std::uint32_t cookie, std::uint64_t size);
  std::size_t count(std::uint32_t v, Completion::Kind kind) const;

 private:
  std::unique_ptr<Cluster> cluster_;
  std::vector<Node> nodes_;
};

// Bytes that depend on `seed` and their place, so that any shift or mix-up shows.
void fill(std::uint8_t* bytes, std::uint64_t size, std::uint64_t seed);
// The first place that differs from fill(seed)'s; -1 if none.
[[nodiscard]] std::int64_t first_difference(const std::uint8_t* bytes, std::uint64_t size,
                                            std::uint64_t seed);
// The first of `bytes` that is not `value`; -1 if none.
[[nodiscard]] std::int64_t first_other(const std::uint8_t* bytes, std::uint64_t size,
                                       std::uint8_t value);

// A small generator for tests that choose at random; the same everywhere.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}
  std::uint64_t below(std::uint64_t limit);

 private:
  std::uint64_t state_;
};

}  // namespace espalier::conformance
