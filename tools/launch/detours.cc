#include "tools/launch/detours.h"

#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cstdio>

#include "base/clock.h"
#include "base/host_name.h"

namespace espalier::launch {
namespace {

using State = Connection::State;

constexpr std::uint64_t kTrialTime = 5'000'000'000;  // ns
// A longer time between two ticks: this process was stopped, and did not hear the others.
constexpr std::uint64_t kStopped = 1'500'000'000;  // ns

}  // namespace

Result<void> Detours::begin(const DaemonStart& how, Connection::Relay relay) {
  relay_ = std::move(relay);
  espalier_ = how.espalier;
  shell_ = how.remote_shell;
  std::array<unsigned char, 16> random;
  if (getrandom(random.data(), random.size(), 0) != static_cast<ssize_t>(random.size())) {
    return fail("no random bytes from the system for the name of a session");
  }
  char text[3];
  for (const unsigned char byte : random) {
    std::snprintf(text, sizeof text, "%02x", byte);
    name_ += text;
  }
  for (Connection& host : connections_) {
    next_channel_ = std::max(next_channel_, host.channel + 1);
    if (!host.way) continue;
    host.send({"lasting", name_});
    host.session.begin_sending();
  }
  return {};
}

Connection* Detours::find(std::uint32_t number) const {
  for (Connection& each : connections_) {
    if (each.number == number) return &each;
  }
  return nullptr;
}

bool Detours::is_silent(const Connection& host, std::uint64_t now_ns) const {
  if (!host.session.has_begun()) return false;
  return host.is_cut || host.session.is_silent(now_ns, kSilentTime);
}

void Detours::tick(std::uint64_t now_ns) {
  if (ticked_at_ns_ != 0 && now_ns > ticked_at_ns_ + kStopped) {
    for (Connection& host : connections_) host.session.forgive(now_ns);
  }
  ticked_at_ns_ = now_ns;
  end_late_trials(now_ns);
  for (Connection& host : connections_) {
    if (host.state == State::kRunning && host.session.has_begun()) look_at(host, now_ns);
  }
}

void Detours::look_at(Connection& host, std::uint64_t now_ns) {
  host.keep_alive(now_ns);
  if (!is_silent(host, now_ns)) {
    silent_ns_.erase(host.number);
    return;
  }
  const auto [since, is_new] = silent_ns_.emplace(host.number, now_ns);
  const Connection* const from = find(host.way->from);
  if (is_new && (from == nullptr || !is_silent(*from, now_ns))) {
    say_(host.where() + " is silent: its cable, or one before it, is broken; looking for another");
  }
  if (is_new) {
    std::erase_if(tried_,
                  [&host](const Attempt& each) { return std::get<2>(each) == host.number; });
  }
  if (now_ns > since->second + kLostTime) {
    host.refusal = "no other cable leads to it";
    silent_ns_.erase(host.number);
    return lose_(host);
  }
  const bool is_tried = std::any_of(trials_.begin(), trials_.end(), [&host](const auto& each) {
    return each.second.host == host.number;
  });
  if (!is_tried) try_next(host, now_ns);
}

void Detours::try_next(Connection& host, std::uint64_t now_ns) {
  if (!host.surroundings) return;
  for (const Connection& from : connections_) {
    const bool is_there = from.state == State::kRunning && from.surroundings &&
                          from.number != host.number && !is_silent(from, now_ns);
    if (!is_there) continue;
    for (const Neighbour& to : from.surroundings->found) {
      const bool is_host =
          std::any_of(host.surroundings->own.begin(), host.surroundings->own.end(),
                      [&to](const Neighbour& own) { return own.address == to.address; });
      const bool is_present = host.way->from == from.number && host.way->to == to;
      if (!is_host || (is_present && !host.is_cut)) continue;
      if (!tried_.insert({from.number, to.interface, host.number}).second) continue;
      const std::uint32_t channel = next_channel_++;
      trials_[channel] = {.host = host.number, .way = {from.number, to}, .since_ns = now_ns};
      std::string shell = shell_;
      if (options_.cables.names_keys && !options_.cables.file.empty() &&
          is_host_name(host.host.name)) {
        shell += " -o HostKeyAlias=" + host.host.name;
      }
      return relay_({from.number, to}, {"reach", std::to_string(channel),
                                        to.address + "%" + to.interface, espalier_, shell, name_});
    }
  }
}

void Detours::end_late_trials(std::uint64_t now_ns) {
  for (auto each = trials_.begin(); each != trials_.end();) {
    const auto& [channel, trial] = *each;
    if (now_ns < trial.since_ns + kTrialTime) {
      ++each;
      continue;
    }
    relay_(trial.way, {"cut", std::to_string(channel)});
    each = trials_.erase(each);
  }
}

void Detours::adopt(Trial& trial, std::uint32_t channel, const Fields& message) {
  Connection* const host = find(trial.host);
  if (host == nullptr || host->state != State::kRunning) return;
  const std::uint32_t old = host->channel;
  const Way before = *host->way;
  const Connection* const from = find(trial.way.from);
  host->came_from = trial.way.to.address + " at " + trial.way.to.interface + " of host " +
                    (from == nullptr ? "" : from->host.name);
  host->go_over(trial.way, channel, std::move(trial.reader), message);
  relay_(before, {"cut", std::to_string(old)});
  silent_ns_.erase(host->number);
  say_(host->where() + " is reached again");
}

bool Detours::take(const Fields& message, std::uint32_t channel) {
  const auto found = trials_.find(channel);
  if (found == trials_.end()) return false;
  Trial& trial = found->second;
  Fields first;
  if (message[0] == "gone" || (message[0] == "from" && !trial.reader.add(message[2]))) {
    trials_.erase(found);
  } else if (message[0] == "from" && trial.reader.take(first)) {
    if (first.size() == 2 && first[0] == "resumed") adopt(trial, channel, first);
    trials_.erase(channel);
  }
  return true;
}

}  // namespace espalier::launch
