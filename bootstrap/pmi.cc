// PMI-1, a protocol of text lines: mpiexec of MPICH, srun --mpi=pmi2.

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>

#include "base/one_line.h"
#include "base/process/variables.h"
#include "base/try.h"
#include "bootstrap/first_word.h"
#include "bootstrap/process_manager.h"

namespace espalier::bootstrap {
namespace {

class Pmi : public ProcessManager {
 public:
  explicit Pmi(int descriptor) : descriptor_(descriptor) {}
  ~Pmi() override {
    until_ = Clock::now() + deadline_;
    if (is_open_) (void)ask("cmd=finalize", "finalize_ack");
  }
  [[nodiscard]] Result<void> open();
  [[nodiscard]] std::uint32_t rank() const override { return rank_; }
  [[nodiscard]] std::uint32_t size() const override { return size_; }
  [[nodiscard]] bool is_one_host() const override { return is_one_host_; }
  [[nodiscard]] std::string job() const override { return space_; }
  [[nodiscard]] Result<std::string> from_rank_zero(const std::string& value,
                                                   std::chrono::milliseconds deadline) override;

 private:
  // Sends a line and reads the reply, which must be of this command.
  [[nodiscard]] Result<std::string> ask(const std::string& line, const std::string& command);
  [[nodiscard]] bool is_readable() const;
  [[nodiscard]] static std::string field(const std::string& line, const std::string& name);

  int descriptor_;
  bool is_open_ = false;
  bool is_one_host_ = false;
  std::uint32_t rank_ = 0, size_ = 0;
  std::string space_;  // the name of the job's values
  std::chrono::milliseconds deadline_{60'000};
  Clock::time_point until_ = Clock::now() + deadline_;
};

Result<std::string> Pmi::ask(const std::string& line, const std::string& command) {
  const std::string text = line + "\n";
  for (std::size_t done = 0; done < text.size();) {
    const ssize_t count = write(descriptor_, text.data() + done, text.size() - done);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return fail("PMI: the launcher is gone");
    done += static_cast<std::size_t>(count);
  }
  std::string reply;
  char character = 0;
  while (true) {
    if (!is_readable()) {
      is_open_ = false;  // a late reply would be taken for that of the next request
      return fail(missing("PMI", deadline_));
    }
    const ssize_t count = read(descriptor_, &character, 1);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0 || reply.size() > 4096) return fail("PMI: the launcher is gone");
    if (character == '\n') break;
    reply += character;
  }
  const std::string status = field(reply, "rc");
  if (field(reply, "cmd") != command || (!status.empty() && status != "0")) {
    return fail("PMI: '" + one_line(line.substr(0, 40)) + "' was answered by '" +
                one_line(reply.substr(0, 80)) + "'");
  }
  return reply;
}

// Whether the launcher has sent something, or has gone, before the deadline.
bool Pmi::is_readable() const {
  FirstWord word;
  Speaker speaker;
  while (true) {
    const auto next = std::min(until_, word.next().value_or(until_));
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(next - Clock::now());
    pollfd file{descriptor_, POLLIN, 0};
    const int ready =
        poll(&file, 1, static_cast<int>(std::clamp<std::int64_t>(left.count() + 1, 0, INT_MAX)));
    if (ready < 0 && errno == EINTR) continue;
    if (ready > 0 || Clock::now() >= until_) return ready > 0;
    if (!word.is_due()) continue;
    say_waiting({.launcher = "PMI",
                 .job = space_,
                 .rank = rank_,
                 .size = size_,
                 .absent = absent(),
                 .so_far = word.so_far()},
                speaker);
  }
}

std::string Pmi::field(const std::string& line, const std::string& name) {
  const std::string spaced = " " + line;
  const std::size_t begin = spaced.find(" " + name + "=");
  if (begin == std::string::npos) return "";
  const std::size_t value = begin + name.size() + 2;
  return spaced.substr(value, spaced.find(' ', value) - value);
}

Result<void> Pmi::open() {
  ESPALIER_TRY_TO(const auto size, read_number(Variable::kPmiSize, 1, UINT32_MAX));
  ESPALIER_TRY_TO(const auto rank,
                  read_number(Variable::kPmiRank, 0, size.value_or(UINT32_MAX) - 1));
  if (!size || !rank) return fail("PMI: the environment has no PMI_SIZE or no PMI_RANK");
  ESPALIER_TRY_TO(const auto here, read_number(Variable::kMpiLocalRanks, 1, UINT32_MAX));
  ESPALIER_TRY_TO(const auto nodes, read_number(Variable::kSlurmNodes, 1, UINT32_MAX));
  rank_ = *rank;
  size_ = *size;
  is_one_host_ = here == size_ || nodes == 1u;
  ESPALIER_TRY(ask("cmd=init pmi_version=1 pmi_subversion=1", "response_to_init"));
  is_open_ = true;
  ESPALIER_TRY_TO(auto space, ask("cmd=get_my_kvsname", "my_kvsname"));
  space_ = field(space, "kvsname");
  return {};
}

Result<std::string> Pmi::from_rank_zero(const std::string& value,
                                        std::chrono::milliseconds deadline) {
  deadline_ = deadline;
  until_ = Clock::now() + deadline;
  const std::string where = " kvsname=" + space_ + " key=espalier.server";
  if (rank_ == 0) {
    ESPALIER_TRY(ask("cmd=put" + where + " value=" + value, "put_result"));
  }
  ESPALIER_TRY(ask("cmd=barrier_in", "barrier_out"));
  auto found = ask("cmd=get" + where, "get_result");
  if (!found) return found;
  return field(*found, "value");
}

}  // namespace

bool has_pmi() { return is_set(Variable::kPmiFd) && is_set(Variable::kPmiRank); }

Result<std::unique_ptr<ProcessManager>> open_pmi() {
  ESPALIER_TRY_TO(const auto descriptor, read_number(Variable::kPmiFd, 0, INT32_MAX));
  if (!descriptor) return fail("PMI: the environment has no PMI_FD");
  auto pmi = std::make_unique<Pmi>(static_cast<int>(*descriptor));
  ESPALIER_TRY(pmi->open());
  return pmi;
}

}  // namespace espalier::bootstrap
