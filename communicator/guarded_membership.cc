#include "communicator/guarded_membership.h"

#include <exception>
#include <string>
#include <utility>

#include "base/counted.h"
#include "base/try.h"
#include "bootstrap/cables/job_graph.h"

namespace espalier::communicator {
namespace {

using bootstrap::Bootstrap;

// Returns what `call` does, a Result. `name`: the function of the membership that it calls.
template <typename Call>
auto without_exceptions(const char* name, Call call) -> decltype(call()) {
  const auto error = [name](const std::string& text) {
    return fail("membership: " + std::string(name) + "() threw an exception" + text);
  };
  try {
    return call();
  } catch (const std::exception& exception) {
    return error(": " + std::string(exception.what()));
  } catch (...) {
    return error("");
  }
}

class GuardedMembership final : public Bootstrap, public cables::OverCables {
 public:
  explicit GuardedMembership(std::shared_ptr<Bootstrap> given) : given_(std::move(given)) {}

  // Asks for what does not change.
  [[nodiscard]] Result<void> ask() {
    const auto take = [this](const char* name, auto function, auto& value) {
      return without_exceptions(name, [&]() -> Result<void> {
        value = ((*given_).*function)();
        return {};
      });
    };
    ESPALIER_TRY(take("rank", &Bootstrap::rank, rank_));
    ESPALIER_TRY(take("size", &Bootstrap::size, size_));
    ESPALIER_TRY(take("method", &Bootstrap::method, method_));
    ESPALIER_TRY(take("is_secret", &Bootstrap::is_secret, is_secret_));
    ESPALIER_TRY(take("secret", &Bootstrap::secret, secret_));
    ESPALIER_TRY(take("local_address", &Bootstrap::local_address, address_));
    ESPALIER_TRY(take("is_newcomer", &Bootstrap::is_newcomer, is_newcomer_));
    if (rank_ < size_ || is_newcomer_) return {};
    return fail("membership: rank " + std::to_string(rank_) + " of " + counted(size_, "process") +
                "; expected a rank below the number of processes");
  }

  [[nodiscard]] std::uint32_t rank() const override { return rank_; }
  [[nodiscard]] std::uint32_t size() const override { return size_; }
  [[nodiscard]] bootstrap::Method method() const override { return method_; }
  [[nodiscard]] bool is_secret() const override { return is_secret_; }
  [[nodiscard]] const bootstrap::JobSecret& secret() const override { return secret_; }
  [[nodiscard]] const std::string& local_address() const override { return address_; }
  [[nodiscard]] Result<void> put(const std::string& key, const std::string& value) override {
    return without_exceptions("put", [&] { return given_->put(key, value); });
  }
  [[nodiscard]] Result<void> fence() override {
    return without_exceptions("fence", [&] { return given_->fence(); });
  }
  [[nodiscard]] Result<std::string> get(std::uint32_t rank, const std::string& key) override {
    return without_exceptions("get", [&] { return given_->get(rank, key); });
  }
  [[nodiscard]] Result<bootstrap::Survivors> rejoin() override {
    return without_exceptions("rejoin", [&] { return given_->rejoin(); });
  }
  [[nodiscard]] std::shared_ptr<const cables::JobGraph> job_graph() const override {
    return cables::job_graph(*given_);
  }
  [[nodiscard]] bool is_newcomer() const override { return is_newcomer_; }
  // A newcomer's rank and size are known then.
  [[nodiscard]] Result<bootstrap::Accepted> accept(std::uint32_t least,
                                                   std::chrono::milliseconds time) override {
    return without_exceptions("accept", [&] {
      auto accepted = given_->accept(least, time);
      rank_ = given_->rank();
      size_ = given_->size();
      return accepted;
    });
  }
  [[nodiscard]] Result<void> complete(const bootstrap::Accepted& accepted,
                                      const std::string& failure) override {
    return without_exceptions("complete", [&] {
      auto completed = given_->complete(accepted, failure);
      is_newcomer_ = given_->is_newcomer();
      return completed;
    });
  }

  void end_accept_by(bootstrap::EndOfAccept end) override {
    (void)without_exceptions("end_accept_by", [&]() -> Result<void> {
      given_->end_accept_by(std::move(end));
      return {};
    });
  }

 private:
  std::shared_ptr<Bootstrap> given_;
  std::uint32_t rank_ = 0, size_ = 0;
  bootstrap::Method method_ = bootstrap::Method::kAutomatic;
  bool is_secret_ = false, is_newcomer_ = false;
  bootstrap::JobSecret secret_ = {};
  std::string address_;
};

}  // namespace

Result<std::shared_ptr<Bootstrap>> guard_membership(std::shared_ptr<Bootstrap> given) {
  auto guarded = std::make_shared<GuardedMembership>(std::move(given));
  ESPALIER_TRY(guarded->ask());
  return guarded;
}

}  // namespace espalier::communicator
