#include "bootstrap/cables/participant.h"

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <system_error>

#include "base/process/system_error.h"
#include "base/try.h"
#include "bootstrap/cables/agent.h"
#include "bootstrap/cables/local_socket.h"
#include "bootstrap/cables/ports.h"

namespace espalier::cables {
namespace {

using bootstrap::Socket;

// Before the place of an agent that has ended is asked for again.
constexpr int kRetryMs = 2;
constexpr Time kFlushPause = std::chrono::microseconds(500);

// An agent's term is above the terms of earlier jobs, whose records may be on their way still.
std::uint32_t since_boot_ms() {
  return static_cast<std::uint32_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(now()).count());
}

}  // namespace

Participant::Participant(const ParticipantOptions& options, Socket wake)
    : options_(options), wake_(std::move(wake)) {
  shared_.own = random_number();
}

Result<std::unique_ptr<Participant>> Participant::start(const ParticipantOptions& options) {
  Socket wake(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (wake.get() < 0) {
    return fail("the cables of this host: " + system_error_text(errno));
  }
  ESPALIER_TRY(own_name());
  std::unique_ptr<Participant> made(new Participant(options, std::move(wake)));
  // The program's signal handlers run in its own threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  std::string failure;
  try {
    made->thread_ = std::thread([participant = made.get()] { participant->run(); });
  } catch (const std::system_error& error) {
    failure = system_error_text(error.code().value());
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (!failure.empty())
    return fail("cannot start a thread for the cables of this host: " + failure);
  return made;
}

Participant::~Participant() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(shared_.mutex);
    ends_ = true;
  }
  wake();
  thread_.join();
}

void Participant::wake() {
  const std::uint64_t one = 1;
  (void)!write(wake_.get(), &one, sizeof one);
}

void Participant::add(const Entry& entry) {
  shared_.flood.add(shared_.own, entry, now());
  wake();
}

void Participant::flush(Time time) {
  std::unique_lock lock(shared_.mutex);
  const Time until = now() + time;
  while (!shared_.flood.is_everywhere() && shared_.failure.empty() && now() < until) {
    (void)shared_.changed.wait_for(lock, kFlushPause);
  }
}

bool Participant::goes_on() {
  std::uint64_t count = 0;
  (void)!read(wake_.get(), &count, sizeof count);
  const std::lock_guard lock(shared_.mutex);
  return !ends_;
}

Result<void> Participant::take_part() {
  if (auto listener = claim_host(options_.secret)) {
    std::uint32_t term = 0;
    {
      const std::lock_guard lock(shared_.mutex);
      term = std::max(shared_.term + 1, since_boot_ms());
    }
    ESPALIER_TRY_TO(const std::string host, own_name());
    Agent agent(options_, shared_, std::move(*listener), term, host);
    while (goes_on()) ESPALIER_TRY(agent.step(wake_.get()));
    return {};
  }
  if (auto connection = connect_to_agent(options_.secret)) {
    Client client(options_, shared_, std::move(*connection));
    if (!client.greet_agent()) return {};
    while (goes_on() && client.step(wake_.get())) {
    }
    return {};
  }
  pollfd waiting{wake_.get(), POLLIN, 0};
  (void)poll(&waiting, 1, kRetryMs);
  return {};
}

void Participant::run() {
  std::string failure;
  try {
    while (failure.empty() && goes_on()) {
      const auto done = take_part();
      if (!done) failure = done.error().message;
    }
  } catch (const std::bad_alloc&) {
    failure = "the cables of this host: no memory";
  }
  const std::lock_guard lock(shared_.mutex);
  shared_.failure = failure.empty() ? "the membership has ended" : failure;
  shared_.changed.notify_all();
}

}  // namespace espalier::cables
