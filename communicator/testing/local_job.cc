#include "communicator/testing/local_job.h"

#include <gtest/gtest.h>

#include <thread>
#include <utility>

namespace espalier::communicator::testing {

class LocalJob::Member : public bootstrap::Bootstrap {
 public:
  Member(LocalJob& job, std::uint32_t rank) : job_(job), rank_(rank) {}
  [[nodiscard]] std::uint32_t rank() const override { return rank_; }
  [[nodiscard]] std::uint32_t size() const override { return job_.size_; }
  [[nodiscard]] bootstrap::Method method() const override { return bootstrap::Method::kTable; }
  [[nodiscard]] bool is_secret() const override { return true; }
  [[nodiscard]] const bootstrap::JobSecret& secret() const override { return secret_; }
  [[nodiscard]] const std::string& local_address() const override { return address_; }
  Result<void> put(const std::string& key, const std::string& value) override {
    const std::lock_guard lock(job_.mutex_);
    job_.values_[{rank_, key}] = value;
    return {};
  }
  Result<void> fence() override {
    job_.fence();
    return {};
  }
  Result<std::string> get(std::uint32_t rank, const std::string& key) override {
    const std::lock_guard lock(job_.mutex_);
    const auto found = job_.values_.find({rank, key});
    if (found == job_.values_.end()) return fail("rank " + std::to_string(rank) + " has no " + key);
    return found->second;
  }
  Result<bootstrap::Survivors> rejoin() override {
    std::unique_lock lock(job_.mutex_);
    job_.rejoining_.insert(rank_);
    job_.changed_.notify_all();
    job_.changed_.wait(
        lock, [this] { return job_.rejoining_.size() + job_.ended_.size() == job_.size_; });
    job_.waiting_for_ = static_cast<std::uint32_t>(job_.rejoining_.size());
    return bootstrap::Survivors{{job_.rejoining_.begin(), job_.rejoining_.end()}, 1};
  }

 private:
  LocalJob& job_;
  std::uint32_t rank_;
  bootstrap::JobSecret secret_ = {1, 2, 3};
  std::string address_ = "127.0.0.1";
};

std::shared_ptr<bootstrap::Bootstrap> LocalJob::member(std::uint32_t rank) {
  return std::make_shared<Member>(*this, rank);
}

void LocalJob::end(std::uint32_t rank) {
  const std::lock_guard lock(mutex_);
  ended_.insert(rank);
  changed_.notify_all();
}

void LocalJob::fence() {
  std::unique_lock lock(mutex_);
  const std::uint64_t number = fences_;
  if (++arrived_ == waiting_for_) {
    arrived_ = 0;
    ++fences_;
    changed_.notify_all();
    return;
  }
  changed_.wait(lock, [&] { return fences_ != number; });
}

JoinOptions options_of(LocalJob& job, std::uint32_t rank) {
  return {.membership = job.member(rank), .provider = "tcp"};
}

Change on_hosts(std::string hosts) {
  return [hosts = std::move(hosts)](JoinOptions& options, std::uint32_t rank) {
    options.provider = "mem+tcp";
    options.host = hosts.at(rank);
  };
}

Change with_deadline(std::chrono::nanoseconds deadline) {
  return [deadline](JoinOptions& options, std::uint32_t) { options.deadline = deadline; };
}

void on_all(std::uint32_t ranks, const std::function<void(Communicator&)>& body,
            const Change& change) {
  LocalJob job(ranks);
  on_all(job, body, change);
}

void on_all(LocalJob& job, const std::function<void(Communicator&)>& body, const Change& change) {
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < job.size(); ++rank) {
    threads.emplace_back([&, rank] {
      JoinOptions options = options_of(job, rank);
      if (change) change(options, rank);
      auto world = join(options);
      ASSERT_TRUE(world) << world.error().message;
      ASSERT_EQ(world->rank(), rank);
      ASSERT_EQ(world->size(), job.size());
      body(*world);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

void with_short_deadline(JoinOptions& options, std::uint32_t /*rank*/) {
  options.deadline = std::chrono::seconds(8);
}

}  // namespace espalier::communicator::testing
