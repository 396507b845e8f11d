#include "hal/conformance/conformance.h"

#include <algorithm>
#include <array>

#include "base/splitmix64.h"

namespace espalier::conformance {
EndpointsSpec complete(std::uint32_t nodes) {
  EndpointsSpec spec;
  spec.peers.resize(nodes);
  for (std::uint32_t v = 0; v < nodes; ++v) {
    for (std::uint32_t u = 0; u < nodes; ++u) {
      if (u != v) spec.peers[v].push_back(u);
    }
  }
  return spec;
}

EndpointsSpec ring(std::uint32_t nodes) {
  EndpointsSpec spec;
  for (std::uint32_t v = 0; v < nodes; ++v) {
    spec.peers.push_back({(v + 1) % nodes, (v + nodes - 1) % nodes});
  }
  return spec;
}

void ConformanceTest::open(const EndpointsSpec& spec) {
  endpoints_ = GetParam().open(spec);
  ASSERT_NE(endpoints_, nullptr) << "the back end could not connect the endpoints";
  nodes_.resize(spec.peers.size());
  for (std::uint32_t v = 0; v < nodes_.size(); ++v) {
    nodes_[v].endpoint = &endpoints_->endpoint(v);
    nodes_[v].in.assign(kArena, kUntouched);
    nodes_[v].out.resize(kArena);
    const std::array regions = {Region{nodes_[v].in.data(), kArena},
                                Region{nodes_[v].out.data(), kArena}};
    ASSERT_EQ(nodes_[v].endpoint->prepare(regions.data(), regions.size()), Status::kOk);
  }
}

Status ConformanceTest::send(std::uint32_t from, std::uint32_t link, const SendPost& post) {
  for (;;) {
    const Status status = nodes_[from].endpoint->post_send(link, post);
    if (status != Status::kTryAgain) return status;
    if (!pump()) endpoints_->progress();
  }
}

Status ConformanceTest::receive(std::uint32_t to, std::uint32_t link, const ReceivePost& post) {
  for (;;) {
    const Status status = nodes_[to].endpoint->post_receive(link, post);
    if (status != Status::kTryAgain) return status;
    if (!pump()) endpoints_->progress();
  }
}

Status ConformanceTest::control(std::uint32_t from, std::uint32_t link, const Control& control) {
  for (;;) {
    const Status status = nodes_[from].endpoint->post_control(link, control);
    if (status != Status::kTryAgain) return status;
    if (!pump()) endpoints_->progress();
  }
}

bool ConformanceTest::pump() {
  bool any = false;
  Completion completion;
  for (TestNode& node : nodes_) {
    while (node.endpoint->poll(completion)) {
      node.log.push_back(completion);
      any = true;
    }
  }
  return any;
}

bool ConformanceTest::drive(const std::function<bool()>& done) {
  while (!done()) {
    if (!pump() && !endpoints_->progress()) return done();
  }
  return true;
}

void ConformanceTest::idle() {
  constexpr int kRounds = 2000;
  for (int i = 0; i < kRounds; ++i) {
    if (!pump() && !endpoints_->progress()) return;
  }
}

bool ConformanceTest::next(std::uint32_t v, Completion::Kind kind, Completion& completion) {
  std::deque<Completion>& log = nodes_[v].log;
  std::size_t seen = 0;  // earlier completions were not of this kind
  const auto found = [&] {
    for (; seen < log.size(); ++seen) {
      if (log[seen].kind == kind) return true;
    }
    return false;
  };
  if (!drive(found)) return false;
  completion = log[seen];
  log.erase(log.begin() + static_cast<std::ptrdiff_t>(seen));
  return true;
}

bool ConformanceTest::next_send_mismatch(std::uint32_t v, std::uint32_t context,
                                         std::uint64_t size) {
  Completion c;
  if (!next(v, Completion::Kind::kSent, c)) return false;
  if (c.status == Status::kOk && size <= nodes_[v].endpoint->eager_bytes()) {
    if (c.context != context || !next(v, Completion::Kind::kSent, c)) return false;
  }
  return c.status == Status::kMismatch && c.context == context;
}

std::size_t ConformanceTest::count(std::uint32_t v, Completion::Kind kind) const {
  const std::deque<Completion>& log = nodes_[v].log;
  return static_cast<std::size_t>(
      std::count_if(log.begin(), log.end(), [&](const Completion& c) { return c.kind == kind; }));
}

void fill(std::uint8_t* bytes, std::uint64_t size, std::uint64_t seed) {
  std::uint64_t word = 0;
  for (std::uint64_t i = 0; i < size; ++i) {
    if (i % 8 == 0) word = splitmix64(seed ^ splitmix64(i / 8));
    bytes[i] = static_cast<std::uint8_t>(word >> (8 * (i % 8)));
  }
}

std::int64_t first_difference(const std::uint8_t* bytes, std::uint64_t size, std::uint64_t seed) {
  std::vector<std::uint8_t> expected(size);
  fill(expected.data(), size, seed);
  const auto at = std::mismatch(expected.begin(), expected.end(), bytes).first;
  return at == expected.end() ? -1 : at - expected.begin();
}

std::int64_t first_other(const std::uint8_t* bytes, std::uint64_t size, std::uint8_t value) {
  const std::uint8_t* at =
      std::find_if(bytes, bytes + size, [&](std::uint8_t b) { return b != value; });
  return at == bytes + size ? -1 : at - bytes;
}

std::uint64_t Random::below(std::uint64_t limit) {
  state_ = splitmix64(state_);
  return state_ % limit;
}

}  // namespace espalier::conformance
