#pragma once
// The rendezvous server as a thread: what it keeps of the processes of its job. Host only.

#include <atomic>
#include <cstdint>
#include <list>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "bootstrap/message.h"
#include "bootstrap/server.h"
#include "bootstrap/stream.h"

namespace espalier::bootstrap {

class ThreadedServer : public Server {
 public:
  // `interfaces`: those to whose addresses processes connect; empty: all.
  ThreadedServer(Listener listener, std::uint32_t size, const JobSecret& secret,
                 network::InterfaceFilter interfaces);
  ~ThreadedServer() override;
  [[nodiscard]] const std::string& address() const override { return address_; }
  [[nodiscard]] bool is_without_memory() const override { return is_without_memory_; }

 private:
  enum class Waits : std::uint8_t { kNothing, kFence, kRejoin, kAccept, kComplete };
  // A process of the job.
  struct Member {
    bool has_joined = false, has_ended = false;
    bool has_left = false;  // and ended as it should
    // Among the processes of the last agreement. Otherwise its number is free for a newcomer.
    bool is_current = true;
    bool is_new = false;        // a newcomer; the others have not agreed yet that it is connected
    std::uint32_t accepts = 0;  // its calls of accept() since the last rejoin()
    bool owes_vote = false;     // got kAccepted, and has not sent kComplete or begun something else
    Waits waits = Waits::kNothing;
    std::uint32_t number = 0;  // of the request that waits
    std::string host = {};     // name of its host, as the process says it
    std::map<std::string, std::string> pending = {}, published = {};
  };
  struct Connection {
    Stream stream;
    Clock::time_point since;
    std::int64_t rank = -1;  // -1: has not proven itself, or is_newcomer
    bool is_over = false;
    bool is_newcomer = false;  // has proven itself, and is no member yet
    std::uint32_t wish = 0;    // number of a newcomer's kAccept that waits; 0: none does
    [[nodiscard]] bool is_stranger() const { return rank < 0 && !is_newcomer && !is_over; }
  };

  // Those that wait learn for whom, before their connections end.
  void tell_the_waiting();
  void serve_while_possible();
  void serve();
  [[nodiscard]] int timeout_ms() const;
  void accept_one();
  void end_strangers();
  void handle(Connection& from);
  // `number`: of the request that is answered.
  void reply(Connection& to, Message message, std::uint32_t number);
  void refuse(Connection& to, const std::string& reason, std::uint32_t number);
  void hello(Connection& from, const Message& message);
  void welcome(Connection& from, const Message& message);
  // A process that has left joins again: once all have left, the job begins anew.
  void join_again(Connection& from, const Message& message);
  // Only then does the process join again: its reply says that it is known to have left.
  void leave(Connection& from, const Message& message);
  void request(Connection& from, const Message& message);
  void get(Connection& from, const Message& message);
  // Those that the others wait for: they have not joined, or have not called what the others did.
  [[nodiscard]] std::vector<std::uint32_t> missing() const;
  // The lowest rank that waits: it speaks for all.
  [[nodiscard]] std::uint32_t first_waiting() const;
  // "rank 3 never started, rank 5 on host b has joined, and does something else".
  [[nodiscard]] std::string describe(const std::vector<std::uint32_t>& ranks) const;
  // Why fences fail. A rank may have ended because it waited too long for others.
  [[nodiscard]] std::string ended_text(std::uint32_t rank) const;
  [[nodiscard]] Message missing_message();
  [[nodiscard]] Connection* connection_of(std::uint32_t rank);
  // After a rejoin, members that ended are not waited for.
  [[nodiscard]] bool is_expected(const Member& member) const;
  void release_fence();
  void fail_fences(const std::string& reason);
  void release_rejoin();
  // Processes that did not call rejoin() in time take no further part.
  void end_rejoin_in_time();
  void end_member(std::uint32_t rank);
  // The rest serves newcomers. accept() has two parts. First all members wait in kAccept, until
  // enough newcomers do; each newcomer gets a number. Then all of them connect, and vote by
  // kComplete: either all are connected, and the newcomers are members, or none is.

  // A process that has proven itself waits for the members.
  void enter(Connection& from, const Message& message);
  void request_of_newcomer(Connection& from, const Message& message);
  // The members' calls belong together by their numbers: one that comes after its round has failed
  // fails with the others.
  void accept(Connection& from, const Message& message);
  [[nodiscard]] std::vector<Connection*> newcomers();
  // How many newcomers came to an accept() that all ranks have called; empty: none goes on.
  [[nodiscard]] std::string newcomers_text();
  // Once all members wait, and enough newcomers do, or their time is over.
  void decide_accept();
  // Gives the newcomers their numbers: first the free ones.
  void take(const std::vector<Connection*>& all);
  // A member will not call accept(), for this reason: its next round fails.
  void decline(Connection& from, const Message& message);
  // A member ends the accept() in which it takes part, for this reason.
  void withdraw(const Connection& from, const Message& message);
  void note_failed_round(std::uint32_t round, const std::string& reason);
  void complete(Connection& from, const Message& message);
  void decide_complete();
  // Ends accept(), if it goes on, with the same reason for all.
  void fail_growth(const std::string& reason);
  // Answers the members that wait for this. `reason`: empty: it is done.
  void answer(Waits what, const std::string& reason);
  void end_growth_in_time();
  void note_end(std::uint32_t rank);
  // Newcomers wait in vain if the job has no process left, and cannot begin anew.
  void refuse_stranded();
  // The processes of the job have agreed anew: the library's values of earlier agreements go.
  void begin_generation();

  Socket listener_;
  network::InterfaceFilter interfaces_;
  Socket wake_;
  std::string address_;
  JobSecret secret_;
  std::uint32_t size_;  // that the job was started with
  std::vector<Member> members_;
  std::list<Connection> connections_;
  std::uint32_t generation_ = 0;
  bool is_rejoining_ = false;  // processes wait for it, until rejoin_until_
  Clock::time_point rejoin_until_;
  // accept(): members wait in it, or they and the newcomers connect.
  bool is_accepting_ = false, is_completing_ = false;
  bool awaits_newcomers_ = false;  // because all members wait
  bool has_vote_ = false;
  std::uint32_t least_ = 0, newcomers_ms_ = 0;
  Clock::time_point growth_until_;
  std::uint32_t round_ = 0;         // of the accept() that goes on, or was the last
  std::uint32_t failed_round_ = 0;  // those up to this one have failed
  std::string failed_reason_;
  std::string outcome_;    // why the last accept() failed after it gave numbers; empty: it did not
  std::string first_end_;  // the first end of a process since the last agreement; empty: none
  std::atomic<bool> ends_ = false;
  std::atomic<bool> is_without_memory_ = false;
  std::thread thread_;
};

}  // namespace espalier::bootstrap
