// A process of a job that is joined over its cables, for membership.py: it does what its input
// says, a word per line, and prints a line for each.
//   join           joins; prints its time in ms, and the graph
//   fence          publishes a value, waits for all, and checks what the others published
//   rejoin         prints the survivors, their generation and the graph
//   leave          ends the membership

#include <chrono>
#include <cstdio>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "bootstrap/cables/job_graph.h"
#include "espalier/bootstrap/bootstrap.h"

namespace espalier {
namespace {

using bootstrap::Bootstrap;
using Clock = std::chrono::steady_clock;

std::string text_of(const cables::JobGraph& graph) {
  std::string text;
  for (const auto& host : graph.hosts) {
    text += " " + host.name + ":";
    for (const std::uint32_t rank : host.ranks) text += std::to_string(rank) + ",";
  }
  for (const auto& cable : graph.cables) {
    text += " " + graph.hosts[cable.a.host].name + "." + cable.a.interface + "-" +
            graph.hosts[cable.b.host].name + "." + cable.b.interface;
  }
  return text;
}

// A value of a length that depends on the rank and the round: the longest has 64 KiB.
std::string value_of(std::uint32_t rank, int round) {
  const std::size_t size = round % 8 == 1 ? (std::size_t{64} << 10) : 100 + 7 * rank;
  return std::string(size, static_cast<char>('a' + (rank + static_cast<unsigned>(round)) % 26));
}

class Member {
 public:
  std::string run(const std::string& word) {
    const auto begin = Clock::now();
    std::string answer = members_ == nullptr ? before(word) : during(word);
    const std::chrono::duration<double, std::milli> taken = Clock::now() - begin;
    char time[32];
    std::snprintf(time, sizeof time, " %.3f", taken.count());
    return word + time + " " + answer;
  }

 private:
  std::string before(const std::string& word) {
    if (word != "join") return "failed: not joined";
    auto joined = bootstrap::join({.deadline = std::chrono::seconds(60)});
    if (!joined) return "failed: " + joined.error().message;
    members_ = *std::move(joined);
    for (std::uint32_t rank = 0; rank < members_->size(); ++rank) ranks_.push_back(rank);
    return "rank " + std::to_string(members_->rank()) + text_of(*cables::job_graph(*members_));
  }
  std::string during(const std::string& word) {
    if (word == "leave") members_.reset();
    if (word == "leave") return "done";
    if (word == "rejoin") {
      auto survivors = members_->rejoin();
      if (!survivors) return "failed: " + survivors.error().message;
      ranks_ = survivors->ranks;
      std::string text = "generation " + std::to_string(survivors->generation) + " ranks";
      for (const std::uint32_t rank : ranks_) text += " " + std::to_string(rank);
      return text + " graph" + text_of(*cables::job_graph(*members_));
    }
    const int round = ++round_;
    const std::string key = "round " + std::to_string(round);
    const auto put = members_->put(key, value_of(members_->rank(), round));
    if (!put) return "failed: " + put.error().message;
    const auto fence = members_->fence();
    if (!fence) return "failed: " + fence.error().message;
    for (const std::uint32_t rank : ranks_) {
      const auto value = members_->get(rank, key);
      if (!value) return "failed: " + value.error().message;
      if (*value != value_of(rank, round))
        return "failed: a wrong value of rank " + std::to_string(rank);
    }
    return "done";
  }
  std::unique_ptr<Bootstrap> members_;
  std::vector<std::uint32_t> ranks_;
  int round_ = 0;
};

}  // namespace
}  // namespace espalier

int main() {
  espalier::Member member;
  for (std::string word; std::getline(std::cin, word);) {
    std::printf("%s\n", member.run(word).c_str());
    std::fflush(stdout);
  }
}
