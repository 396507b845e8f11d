#pragma once
// An endpoint without a fabric: a test sees every post and decides when it completes. Host only.

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <utility>
#include <vector>

#include "espalier/hal/endpoint.h"
#include "espalier/internal/base/limits.h"

namespace espalier::testing {

class ScriptedEndpoint final : public Endpoint {
 public:
  struct Post {
    bool send = false;
    std::uint32_t link = 0;
    const void* bytes = nullptr;
    std::uint64_t size = 0;
    std::uint64_t tag = 0;
    std::uint32_t check = 0;
    std::uint32_t context = 0;
  };
  struct Told {
    std::uint32_t link = 0;
    Control control;
  };

  // Node `node` with links to `peers`.
  ScriptedEndpoint(std::uint32_t node, std::vector<std::uint32_t> peers,
                   std::uint32_t window = kMaxWindow)
      : node_(node), window_(window), peers_(std::move(peers)) {}

  [[nodiscard]] std::uint32_t node() const override { return node_; }
  [[nodiscard]] std::uint32_t links() const override {
    return static_cast<std::uint32_t>(peers_.size());
  }
  [[nodiscard]] std::uint32_t peer(std::uint32_t link) const override { return peers_[link]; }
  [[nodiscard]] std::uint32_t window() const override { return window_; }
  [[nodiscard]] std::uint64_t eager_bytes() const override { return 64; }
  [[nodiscard]] Status prepare(const Region* regions, std::uint32_t count) override {
    prepared.assign(regions, regions + count);
    return prepare_status;
  }
  [[nodiscard]] Status post_receive(std::uint32_t link, const ReceivePost& post) override {
    return add({false, link, post.bytes, post.size, post.tag, 0, post.context});
  }
  [[nodiscard]] Status post_send(std::uint32_t link, const SendPost& post) override {
    return add({true, link, post.bytes, post.size, post.tag, post.check, post.context});
  }
  [[nodiscard]] Status post_control(std::uint32_t link, const Control& control) override {
    if (refuse && refuse()) return Status::kTryAgain;
    controls.push_back({link, control});
    return Status::kOk;
  }
  [[nodiscard]] bool poll(Completion& completion) override {
    ++looks;
    if (completions.empty()) return false;
    completion = completions.front();
    completions.pop_front();
    return true;
  }
  void release() override { ++released; }
  [[nodiscard]] std::uint64_t now() override {
    ++clock_readings;
    return time;
  }
  void wait(std::uint64_t until) override { time = until; }

  // Completes the oldest post of that link and direction. False if there is none.
  bool complete(bool send, std::uint32_t link, Status status = Status::kOk) {
    for (auto post = posts.begin(); post != posts.end(); ++post) {
      if (post->send != send || post->link != link) continue;
      Completion completion{.kind = send ? Completion::Kind::kSent : Completion::Kind::kReceived,
                            .link = link,
                            .context = post->context,
                            .status = status,
                            .check = check_of ? check_of(*post) : 0,
                            .control = {}};
      posts.erase(post);
      completions.push_back(completion);
      return true;
    }
    return false;
  }
  void tell(std::uint32_t link, const Control& control) {
    completions.push_back({.kind = Completion::Kind::kControl, .link = link, .control = control});
  }
  void tell_early(std::uint32_t link, std::uint64_t tag) {
    Completion completion{
        .kind = Completion::Kind::kUnexpected, .link = link, .tag = tag, .control = {}};
    completions.push_back(completion);
  }

  std::vector<Region> prepared;
  Status prepare_status = Status::kOk;
  std::deque<Post> posts;  // outstanding
  std::deque<Completion> completions;
  std::vector<Told> controls;
  std::function<bool()> refuse;              // kTryAgain for this post
  std::function<void(const Post&)> on_post;  // called with every accepted post
  std::function<std::uint32_t(const Post&)>
      check_of;  // the check value that a receive gets from its sender
  std::uint64_t time = 1'000'000'000;
  int released = 0;
  int looks = 0;  // calls of poll()
  int clock_readings = 0;

 private:
  Status add(const Post& post) {
    if (refuse && refuse()) return Status::kTryAgain;
    const auto same_lane = [&](const Post& other) {
      return other.send == post.send && other.link == post.link;
    };
    const auto posted = std::count_if(posts.begin(), posts.end(), same_lane);
    if (std::cmp_greater_equal(posted, window_)) return Status::kTooLarge;
    posts.push_back(post);
    if (on_post) on_post(post);
    return Status::kOk;
  }

  std::uint32_t node_;
  std::uint32_t window_;
  std::vector<std::uint32_t> peers_;
};

}  // namespace espalier::testing
