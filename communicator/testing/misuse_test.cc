// What a program must not do, or what it gives and breaks: errors, and the process lives on.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/testing/results.h"
#include "communicator/c_interface.h"
#include "communicator/testing/local_job.h"
#include "espalier/communicator.h"
#include "espalier/espalier.h"

namespace espalier {
namespace {

using namespace communicator::testing;

// One process, or what another membership has, except one function that throws.
class Throwing final : public bootstrap::Bootstrap {
 public:
  explicit Throwing(std::string function, std::shared_ptr<Bootstrap> real = nullptr)
      : function_(std::move(function)), real_(std::move(real)) {}

  [[nodiscard]] std::uint32_t rank() const override {
    check("rank");
    return real_ ? real_->rank() : 0;
  }
  [[nodiscard]] std::uint32_t size() const override {
    check("size");
    return real_ ? real_->size() : 1;
  }
  [[nodiscard]] bootstrap::Method method() const override {
    check("method");
    return bootstrap::Method::kAlone;
  }
  [[nodiscard]] bool is_secret() const override {
    check("is_secret");
    return real_ && real_->is_secret();
  }
  [[nodiscard]] const bootstrap::JobSecret& secret() const override {
    check("secret");
    return real_ ? real_->secret() : secret_;
  }
  [[nodiscard]] const std::string& local_address() const override {
    check("local_address");
    return real_ ? real_->local_address() : address_;
  }
  [[nodiscard]] Result<void> put(const std::string& key, const std::string& value) override {
    check("put");
    value_ = value;
    return real_ ? real_->put(key, value) : Result<void>();
  }
  [[nodiscard]] Result<void> fence() override {
    check("fence");
    return real_ ? real_->fence() : Result<void>();
  }
  [[nodiscard]] Result<std::string> get(std::uint32_t rank, const std::string& key) override {
    check("get");
    return real_ ? real_->get(rank, key) : value_;
  }
  [[nodiscard]] Result<bootstrap::Survivors> rejoin() override {
    check("rejoin");
    return fail("alone");
  }
  // From now on this function throws.
  void break_at(std::string function) { function_ = std::move(function); }

 private:
  void check(const std::string& function) const {
    if (function == function_) throw std::runtime_error("the directory is gone");
    if ("not an exception: " + function == function_) throw 7;
  }

  std::string function_;
  std::shared_ptr<Bootstrap> real_;
  std::string value_;
  std::string address_ = "127.0.0.1";
  bootstrap::JobSecret secret_ = {};
};

TEST(Misuse, AMembershipThatThrowsIsAnErrorOfJoin) {
  for (const std::string function :
       {"rank", "size", "method", "is_secret", "secret", "local_address", "put", "fence", "get"}) {
    JoinOptions options{.membership = std::make_shared<Throwing>(function)};
    EXPECT_EQ(message_of(join(options)),
              "membership: " + function + "() threw an exception: the directory is gone");
    options.membership = std::make_shared<Throwing>("not an exception: " + function);
    EXPECT_EQ(message_of(join(options)), "membership: " + function + "() threw an exception");
  }
}

TEST(Misuse, AMembershipThatThrowsIsAnErrorOfRejoin) {
  auto world = or_throw(join(JoinOptions{.membership = std::make_shared<Throwing>("rejoin")}));
  EXPECT_EQ(message_of(world.rejoin()),
            "membership: rejoin() threw an exception: the directory is gone");
}

TEST(Misuse, ACommunicatorEndsThoughItsMembershipThrows) {
  std::vector<std::shared_ptr<Throwing>> memberships(2);
  on_all(
      2,
      [&](Communicator& world) {
        const auto membership = memberships[world.rank()];
        EXPECT_TRUE(world.barrier());
        membership->break_at("fence");
        { const Communicator ended = std::move(world); }
      },
      [&](JoinOptions& options, std::uint32_t rank) {
        memberships[rank] = std::make_shared<Throwing>("", options.membership);
        options.membership = memberships[rank];
      });
}

TEST(Misuse, AnObjectThatWasMovedFromHasErrors) {
  on_all(2, [](Communicator& world) {
    const std::string text =
        "this communicator was moved from, or has left; expected one that join() or split() "
        "returned";
    std::vector<float> data(4);
    auto planned = world.plan(call::barrier());
    ASSERT_TRUE(planned);
    Request started = or_throw(world.start(call::barrier())), request = std::move(started);
    Communicator moved = std::move(world);
    // NOLINTBEGIN(bugprone-use-after-move)
    EXPECT_EQ(world.rank(), 0U);
    EXPECT_EQ(world.size(), 0U);
    EXPECT_EQ(world.cause().status, Status::kOk);
    EXPECT_EQ(message_of(world.barrier()), text);
    EXPECT_EQ(message_of(world.all_to_all(data, data)), text);
    EXPECT_EQ(message_of(world.start(call::barrier())), text);
    EXPECT_EQ(message_of(world.plan(call::barrier())), text);
    EXPECT_EQ(message_of(world.neighbor_counts({})), text);
    EXPECT_EQ(message_of(world.split(0)), text);
    EXPECT_EQ(message_of(world.rejoin()), text);
    EXPECT_EQ(message_of(world.leave()), text);
    EXPECT_EQ(message_of(started.wait()),
              "this request was moved from, or was never started; expected one that start() "
              "returned");
    EXPECT_EQ(message_of(started.test()), message_of(started.wait()));

    Plan plan = *std::move(planned);
    EXPECT_EQ(message_of(planned->start()),
              "this plan was moved from; expected the object that it was moved to");
    EXPECT_EQ(message_of(planned->test()), message_of(planned->start()));
    EXPECT_EQ(message_of(planned->wait()), message_of(planned->start()));
    EXPECT_EQ(planned->algorithm(), "");
    // NOLINTEND(bugprone-use-after-move)
    EXPECT_TRUE(request.wait());
    EXPECT_TRUE(plan.start());
    EXPECT_TRUE(plan.wait());
    EXPECT_TRUE(moved.barrier());
  });
}

// Another thread is in a barrier until leave() has refused.
TEST(Misuse, LeavingWhileAnotherThreadCallsIsAnError) {
  std::atomic<bool> is_refused = false;
  on_all(2, [&](Communicator& made) {
    const bool leaves = made.rank() == 0;
    espalier_comm* const world = communicator::make_handle(std::move(made));
    espalier_plan* plan = nullptr;
    espalier_call barrier = espalier_default_call();
    barrier.collective = ESPALIER_BARRIER;
    ASSERT_EQ(espalier_plan_call(&barrier, world, &plan), ESPALIER_OK);
    ASSERT_EQ(espalier_barrier(world), ESPALIER_OK);  // the next one takes its operation
    std::thread other([&] {
      while (!leaves && !is_refused) std::this_thread::yield();
      int status = ESPALIER_BAD_ARGUMENT;  // while this rank tests its plan
      while (status == ESPALIER_BAD_ARGUMENT) status = espalier_barrier(world);
      EXPECT_EQ(status, ESPALIER_OK) << espalier_error();
    });
    int complete = 0;
    while (leaves && espalier_plan_test(plan, &complete) == ESPALIER_OK) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (leaves) {
      EXPECT_EQ(espalier_leave(world), ESPALIER_BAD_ARGUMENT);
      EXPECT_STREQ(espalier_error(),
                   "another thread uses this communicator; expected one thread at a time");
      is_refused = true;
    }
    other.join();
    espalier_plan_free(plan);
    EXPECT_EQ(espalier_leave(world), ESPALIER_OK) << espalier_error();
  });
}

}  // namespace
}  // namespace espalier
