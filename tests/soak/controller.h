#pragma once
// Starts members, gives them one job after the other, kills some of them, and checks what the
// survivors say.

#include <sys/types.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "bootstrap/server.h"
#include "tests/soak/samples.h"

namespace espalier::soak {

constexpr std::uint32_t kMembers = 8;

// What happened.
struct Record {
  std::uint64_t jobs = 0, tcp = 0, mem = 0, with_secret = 0, with_thread = 0;
  std::uint64_t mixed = 0;  // over mem+tcp
  std::uint64_t by_server = 0, by_first = 0, by_folder = 0;
  std::uint64_t jobs_with_kills = 0, kills = 0, kills_at_end = 0, max_kills_at_once = 0;
  std::uint64_t rejoined = 0;
  std::uint64_t collectives = 0;  // completed with the right result, counted on each member
  std::string error;              // what ended the run before its time; empty: nothing
  std::vector<Sample> samples;
};

class Controller {
 public:
  // `folder` is for the run alone.
  Controller(std::uint64_t seed, std::string folder);
  ~Controller();  // ends the members
  Controller(const Controller&) = delete;
  Controller& operator=(const Controller&) = delete;

  // Runs jobs for this time. `verbose`: prints a line for each job on stderr.
  [[nodiscard]] Record run(std::chrono::seconds time, bool verbose);

 private:
  using Clock = std::chrono::steady_clock;
  struct Member {
    pid_t process = -1;
    int orders = -1, lines = -1;
    std::string text;        // read from `lines`
    std::uint64_t jobs = 0;  // that it took part in until their end
    double heap_kib = 0;     // in use after the last one
  };
  struct Job {
    std::uint64_t seed = 0;
    std::string provider, method;  // as in orders (member.h)
    std::uint32_t ranks_per_host = 0;
    bool has_secret = false, has_thread = false;
    // Kills at each failure, one failure after the other.
    std::vector<std::uint32_t> kills;
    bool dies_in_rejoin = false;  // one more is killed while the survivors rejoin, the first time
    bool dies_at_end = false;     // one more is killed when all have the order to end
  };
  struct Failure {
    unsigned status = 0, detector = 0, peer = 0;
    std::string message;
  };

  // Each returns what went wrong; empty: nothing.
  [[nodiscard]] std::string start_members();
  [[nodiscard]] std::string start_member(Member& member);
  [[nodiscard]] std::string end_members();
  [[nodiscard]] std::string run_job(const Job& job);
  [[nodiscard]] std::string give_order(const Job& job);
  [[nodiscard]] std::string kill_some(std::uint32_t victims, bool one_more);
  [[nodiscard]] std::string await_rejoined(Member& member, Clock::time_point until);
  [[nodiscard]] std::set<std::uint32_t> draw_victims(std::uint32_t count);
  void end_victims(const std::set<std::uint32_t>& victims);
  [[nodiscard]] std::string judge(const std::vector<Failure>& failures,
                                  const std::set<std::uint32_t>& victims) const;
  [[nodiscard]] std::string end_job(bool with_kill);
  [[nodiscard]] std::string await_end(Member& member, Clock::time_point until);

  [[nodiscard]] Job draw_job();
  void count(const Job& job);
  // Waits for a line of every member of the job that begins with the word, and returns the rest of
  // each. Error: another line, or none.
  [[nodiscard]] std::string await(const std::string& word, std::vector<std::string>& rests);
  [[nodiscard]] std::optional<std::string> next_line(Member& member, Clock::time_point until);
  void end_member(Member& member);
  void pause(std::uint64_t max_ms);
  void note_end(Member& member, const std::string& counts);
  [[nodiscard]] Sample take_sample();

  std::mt19937_64 random_;
  std::string folder_;
  Clock::time_point began_ = Clock::now();
  std::array<Member, kMembers> members_;
  std::vector<Member*> ranks_;  // the members in the job, by rank
  std::unique_ptr<bootstrap::Server> server_;
  Record record_;
};

}  // namespace espalier::soak
