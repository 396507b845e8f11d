#include "tests/storm/promises.h"

#include <algorithm>
#include <set>
#include <utility>

namespace espalier::storm {
namespace {

using Pair = std::pair<std::uint32_t, std::uint32_t>;

Pair unordered(std::uint32_t a, std::uint32_t b) { return {std::min(a, b), std::max(a, b)}; }

// A probe goes out every D/8 and a link may be silent for D/2, so a shorter silence of a peer than
// 3/8 D is never taken for its death. A clock may be fast: less.
std::uint64_t harmless_silence(const Plan& plan) { return plan.deadline_ns * 3 / 10; }

// A node that pauses longer than this may miss the D/4 in which others accept another cause.
std::uint64_t short_pause(const Plan& plan) { return plan.deadline_ns / 8; }

class Judge {
 public:
  Judge(const Plan& plan, const Schedule& schedule, const Facts& facts)
      : plan_(plan), schedule_(schedule), facts_(facts), cut_(nodes()) {
    for (std::uint32_t v = 0; v < nodes(); ++v) cut_[v].resize(schedule.peers[v].size());
    for (std::size_t i = 0; i < plan.faults.size(); ++i) {
      if (facts.struck[i]) note(plan.faults[i]);
    }
  }

  Broken judge() {
    if (!facts_.hang.empty()) return {"hang", facts_.hang};
    for (std::uint32_t v = 0; v < nodes(); ++v) {
      if (!facts_.nodes[v].wrong.empty()) {
        return {"result", "node " + std::to_string(v) + ": " + facts_.nodes[v].wrong};
      }
    }
    for (std::uint32_t v = 0; v < nodes(); ++v) {
      const NodeFacts& node = facts_.nodes[v];
      if (!node.alive) continue;
      if (!node.ended) return {"hang", name(v) + " is busy at the end"};
      if (node.status == Status::kOk && node.rounds != plan_.rounds) {
        return {"hang", name(v) + " has not done its collectives, and knows no failure"};
      }
      if (node.status == Status::kOk) continue;
      if (Broken broken = judge_failure(v); !broken.kind.empty()) return broken;
    }
    if (is_dropped_unseen()) return {"unseen", "a message was dropped, and every node succeeded"};
    return judge_agreement();
  }

 private:
  [[nodiscard]] std::uint32_t nodes() const {
    return static_cast<std::uint32_t>(schedule_.peers.size());
  }
  [[nodiscard]] static std::string name(std::uint32_t v) { return "node " + std::to_string(v); }

  void cut(std::uint32_t from, std::uint32_t to) {
    const auto& peers = schedule_.peers[from];
    const auto link = std::find(peers.begin(), peers.end(), to);
    if (link != peers.end()) cut_[from][static_cast<std::size_t>(link - peers.begin())] = true;
  }

  void note(const Fault& fault) {
    switch (fault.kind) {
      case Kind::kDrop:
      case Kind::kDuplicate:
      case Kind::kReorder:
      case Kind::kCorrupt:
        damaged_.insert(unordered(fault.node, fault.peer));
        is_corrupt_ = is_corrupt_ || fault.kind == Kind::kCorrupt;
        budget_ += fault.kind == Kind::kReorder ? fault.ns : 0;
        break;
      case Kind::kDelay: budget_ += fault.ns; break;
      case Kind::kKill: killed_.insert(fault.node); break;
      case Kind::kPause:
      case Kind::kHiccup:
      case Kind::kRestart: note_absence(fault); break;
      case Kind::kDeaf:
        deaf_.insert(fault.node);
        for (const std::uint32_t peer : schedule_.peers[fault.node]) cut(peer, fault.node);
        break;
      case Kind::kDrift: slowest_ppm_ = std::min(slowest_ppm_, fault.ppm); break;
      case Kind::kTick: tick_ns_ = std::max(tick_ns_, fault.ns); break;
      case Kind::kOneWay:
        severed_.insert(unordered(fault.node, fault.peer));
        cut(fault.node, fault.peer);
        break;
      case Kind::kPartition:
        for (std::uint32_t v = 0; v < nodes(); ++v) {
          for (const std::uint32_t u : schedule_.peers[v]) {
            if ((v < fault.node) == (u < fault.node)) continue;
            severed_.insert(unordered(v, u));
            cut(v, u);
          }
        }
        break;
      case Kind::kNoise:
        is_corrupt_ = true;
        for (std::uint32_t v = 0; v < nodes(); ++v) {
          for (const std::uint32_t u : schedule_.peers[v]) damaged_.insert(unordered(v, u));
        }
        break;
      case Kind::kOutage:
        silence_ += outage_ns(fault);
        budget_ += outage_ns(fault);
        outages_.insert(unordered(fault.node, fault.peer));
        if (outage_ns(fault) > short_pause(plan_)) cut(fault.node, fault.peer);
        break;
      default: break;
    }
  }

  // The node is away for a time: others find it dead if that is long enough.
  void note_absence(const Fault& fault) {
    const bool restarts = fault.kind == Kind::kRestart;
    silence_ += fault.ns;
    budget_ += fault.ns;
    pauses_.insert(fault.node);
    if (fault.ns > short_pause(plan_) || restarts) sleepers_.insert(fault.node);
    if (restarts) (facts_.nodes[fault.node].alive ? restarted_ : killed_).insert(fault.node);
    if (fault.kind != Kind::kHiccup) return;
    budget_ += fault.ns;
    hiccup_ns_ = std::max(hiccup_ns_, fault.ns);
    hiccups_ns_ += fault.ns * fault.times;
  }

  // How long a link is silent: on framed links, until the frames that were lost are sent again.
  [[nodiscard]] std::uint64_t outage_ns(const Fault& fault) const {
    return is_framed(plan_.over) ? 2 * fault.ns : fault.ns;
  }

  [[nodiscard]] bool harmless() const {
    return damaged_.empty() && killed_.empty() && restarted_.empty() && deaf_.empty() &&
           severed_.empty() && silence_ < harmless_silence(plan_) && budget_ < plan_.deadline_ns;
  }

  // Messages match by order, so the receiver of a dropped one cannot come to its end, unless
  // another fault of the same link gives it a copy.
  [[nodiscard]] bool is_dropped_unseen() const {
    for (std::size_t i = 0; i < plan_.faults.size(); ++i) {
      if (facts_.struck[i] && plan_.faults[i].kind == Kind::kDrop && !may_be_copied(i)) {
        return std::all_of(facts_.nodes.begin(), facts_.nodes.end(), [](const NodeFacts& node) {
          return node.alive && node.status == Status::kOk;
        });
      }
    }
    return false;
  }

  // Whether another fault struck the messages of the link on which fault `drop` struck.
  [[nodiscard]] bool may_be_copied(std::size_t drop) const {
    const Fault& dropped = plan_.faults[drop];
    for (std::size_t i = 0; i < plan_.faults.size(); ++i) {
      const Fault& fault = plan_.faults[i];
      if (i == drop || !facts_.struck[i]) continue;
      if (fault.kind == Kind::kNoise) return true;
      if (is_of_message(fault.kind) && fault.node == dropped.node && fault.peer == dropped.peer) {
        return true;
      }
    }
    return false;
  }

  // The failure that node v reports: there is a reason for it, it names the culprit, in time.
  Broken judge_failure(std::uint32_t v) {
    const NodeFacts& node = facts_.nodes[v];
    const Cause& cause = node.cause;
    const std::string text = name(v) + " ended with " + status_name(node.status) + ", detector " +
                             std::to_string(cause.detector) + ", peer " +
                             std::to_string(cause.peer);
    if (node.status != cause.status) return {"cause", text + ", but its cause has another status"};
    if (harmless()) return {"failure", text + ", without a fault that may cause it"};
    if (!may_end_with(cause)) return {"culprit", text};
    // A node that has done its collectives awaits nobody: it learns of a failure when it is told.
    const std::uint64_t late = limit_of(v);
    if (node.rounds != plan_.rounds && node.ended_ns > late) {
      return {"late", text + ", at " + std::to_string(node.ended_ns) + " ns; expected by " +
                          std::to_string(late)};
    }
    return {};
  }

  [[nodiscard]] bool may_end_with(const Cause& cause) const {
    const Pair link = unordered(cause.detector, cause.peer);
    switch (cause.status) {
      case Status::kDeadLink:
        if (killed_.contains(cause.peer) || severed_.contains(link)) return true;
        if (deaf_.contains(cause.peer) || deaf_.contains(cause.detector)) return true;
        return silence_ >= harmless_silence(plan_) &&
               (pauses_.contains(cause.peer) || outages_.contains(link));
      case Status::kMismatch:
      case Status::kNotInSchedule: return damaged_.contains(link) || has_restarted(cause);
      case Status::kCorrupt: return is_corrupt_ && damaged_.contains(link);
      case Status::kStalled: return !damaged_.empty() || !restarted_.empty() || may_stall();
      default: return false;
    }
  }

  // Whether the node that booted again is at an end of the cause's link: what it sends belongs to
  // another collective, or to another message.
  [[nodiscard]] bool has_restarted(const Cause& cause) const {
    return restarted_.contains(cause.detector) || restarted_.contains(cause.peer);
  }

  // Whether pauses may let a node call the cluster stalled. A node finds a dead link up to D after
  // it began to wait, and while it has hiccups its time stops; others call the cluster stalled at
  // 7/4 D. That comes first if the node began to wait late. Clocks drift by up to a tenth.
  [[nodiscard]] bool may_stall() const {
    const bool is_lost = !killed_.empty() || !deaf_.empty() || !severed_.empty();
    return budget_ >= plan_.deadline_ns ||
           (is_lost && budget_ + hiccups_ns_ >= plan_.deadline_ns / 2);
  }

  // The latest time at which node v may learn of its failure: 2D after the last message anywhere,
  // or after the last fault, by the slowest clock.
  [[nodiscard]] std::uint64_t limit_of(std::uint32_t v) const {
    std::uint64_t last = facts_.moved_ns;
    for (std::size_t i = 0; i < plan_.faults.size(); ++i) {
      const Fault& fault = plan_.faults[i];
      if (!facts_.struck[i]) continue;
      std::uint64_t end = facts_.struck_ns[i];
      const bool counts = fault.node == v || fault.ns <= plan_.deadline_ns;
      if (fault.kind == Kind::kPause && counts) end += fault.ns;
      if (fault.kind == Kind::kOutage) end += outage_ns(fault);
      if (fault.kind == Kind::kRestart) end += fault.ns;
      if (fault.kind == Kind::kHiccup && fault.node == v) end += fault.every_ns * fault.times;
      last = std::max(last, end);
    }
    return last + 2 * plan_.deadline_ns / slowest_ppm_ * 1'000'000 + plan_.deadline_ns / 16 +
           4 * hiccup_ns_ + 4 * tick_ns_;
  }

  // Which nodes can tell node `from`'s news, over live nodes that do not sleep.
  [[nodiscard]] std::vector<bool> reached(std::uint32_t from) const {
    std::vector<bool> seen(nodes());
    std::vector<std::uint32_t> list = {from};
    seen[from] = true;
    for (std::size_t i = 0; i < list.size(); ++i) {
      const auto& peers = schedule_.peers[list[i]];
      for (std::size_t link = 0; link < peers.size(); ++link) {
        const std::uint32_t u = peers[link];
        if (seen[u] || cut_[list[i]][link] || !facts_.nodes[u].alive || sleepers_.contains(u)) {
          continue;
        }
        seen[u] = true;
        list.push_back(u);
      }
    }
    return seen;
  }

  // Nodes that reach each other end alike.
  Broken judge_agreement() {
    const bool failed = std::any_of(facts_.nodes.begin(), facts_.nodes.end(), [](const auto& node) {
      return node.alive && node.status != Status::kOk;
    });
    if (!failed) return {};
    std::vector<bool> done(nodes());
    for (std::uint32_t v = 0; v < nodes(); ++v) {
      if (done[v] || !facts_.nodes[v].alive || sleepers_.contains(v)) continue;
      const std::vector<bool> out = reached(v);
      for (std::uint32_t u = v + 1; u < nodes(); ++u) {
        if (done[u] || !out[u]) continue;
        if (!has_cuts() || reached(u)[v]) {
          done[u] = true;
          if (!same(v, u) && !may_differ(v, u)) return two_causes(v, u);
        }
      }
    }
    return {};
  }

  [[nodiscard]] bool has_cuts() const {
    return std::any_of(cut_.begin(), cut_.end(), [](const std::vector<bool>& links) {
      return std::find(links.begin(), links.end(), true) != links.end();
    });
  }

  [[nodiscard]] bool same(std::uint32_t v, std::uint32_t u) const {
    const NodeFacts& a = facts_.nodes[v];
    const NodeFacts& b = facts_.nodes[u];
    return a.status == b.status &&
           (a.status == Status::kOk ||
            (a.cause.detector == b.cause.detector && a.cause.peer == b.cause.peer));
  }

  // Two causes that were found about D/4 apart, and news that came over a node that had slept, are
  // exceptions (docs/architecture.md, "Two causes").
  [[nodiscard]] bool may_differ(std::uint32_t v, std::uint32_t u) const {
    const NodeFacts& a = facts_.nodes[v];
    const NodeFacts& b = facts_.nodes[u];
    if (came_late(v) || came_late(u)) return true;
    if (a.status == Status::kOk || b.status == Status::kOk) return false;
    return was_found_as_it_ended(a.cause, u) || was_found_as_it_ended(b.cause, v);
  }

  // Whether the cause was found about when node v ended, or when those of its part did before it
  // woke, or before one woke over which v's own cause came.
  [[nodiscard]] bool was_found_as_it_ended(const Cause& cause, std::uint32_t v) const {
    if (was_found_at(cause, facts_.nodes[v].ended_ns)) return true;
    const bool slept = slept_lately(v);
    const std::uint64_t ended_ns = facts_.nodes[v].ended_ns;
    const std::uint64_t sleep_ns = longest_sleep_ns();
    for (std::uint32_t w = 0; w < facts_.nodes.size(); ++w) {
      const std::uint64_t before_ns = facts_.nodes[w].ended_ns;
      if (w == v || !same(v, w) || !was_found_at(cause, before_ns)) continue;
      const bool is_later = sleep_ns > 0 && ended_ns >= before_ns;
      if (slept || (is_later && ended_ns - before_ns <= sleep_ns + sleep_ns / 16)) return true;
    }
    return false;
  }

  // 0: no node slept.
  [[nodiscard]] std::uint64_t longest_sleep_ns() const {
    std::uint64_t longest = 0;
    for (std::size_t i = 0; i < plan_.faults.size(); ++i) {
      const Fault& fault = plan_.faults[i];
      if (!facts_.struck[i] || (fault.kind != Kind::kHiccup && fault.kind != Kind::kPause))
        continue;
      longest = std::max(longest, fault.ns);
    }
    return longest;
  }

  // Whether node v slept in the D/4 before it ended.
  [[nodiscard]] bool slept_lately(std::uint32_t v) const {
    const std::uint64_t ended_ns = facts_.nodes[v].ended_ns;
    const std::uint64_t window = plan_.deadline_ns / 4 / slowest_ppm_ * 1'000'000;
    for (std::size_t i = 0; i < plan_.faults.size(); ++i) {
      const Fault& fault = plan_.faults[i];
      const bool often = fault.kind == Kind::kHiccup;
      if (!facts_.struck[i] || fault.node != v || !(often || fault.kind == Kind::kPause)) continue;
      const std::uint64_t begin = facts_.struck_ns[i];
      const std::uint64_t end = begin + (often ? fault.every_ns * (fault.times - 1) : 0) + fault.ns;
      if (begin < ended_ns && end + window > ended_ns) return true;
    }
    return false;
  }

  // Whether the cause was found about when others ended. Their clocks may be coarse, slow or fast.
  [[nodiscard]] bool was_found_at(const Cause& cause, std::uint64_t ended_ns) const {
    const std::uint64_t quarter = plan_.deadline_ns / 4;
    const std::uint64_t about = quarter / 4 + 2 * tick_ns_;
    const std::uint64_t found = facts_.nodes[cause.detector].found_ns;
    return found < kNever && found + about > ended_ns && found < ended_ns + about;
  }

  // Whether node v's cause was found in another part of the cluster, and its news came over a node
  // that had slept, or a link that had been slow, in the last D/4. Some nodes of v's part may have
  // ended with their own cause just before.
  [[nodiscard]] bool came_late(std::uint32_t v) const {
    const NodeFacts& node = facts_.nodes[v];
    if (node.status == Status::kOk || reached(node.cause.detector)[v]) return false;
    const std::uint64_t window = plan_.deadline_ns / 4 / slowest_ppm_ * 1'000'000;
    for (std::size_t i = 0; i < plan_.faults.size(); ++i) {
      const Fault& fault = plan_.faults[i];
      if (!facts_.struck[i]) continue;
      const bool often = fault.kind == Kind::kHiccup;
      if (!often && fault.kind != Kind::kPause && fault.kind != Kind::kOutage &&
          fault.kind != Kind::kRestart) {
        continue;
      }
      const std::uint64_t begin = facts_.struck_ns[i];
      const std::uint64_t end = begin + (often ? fault.every_ns * fault.times : fault.ns);
      const std::uint64_t first = often ? begin : end;
      if (first <= node.ended_ns && node.ended_ns <= end + window + plan_.deadline_ns / 16) {
        return true;
      }
    }
    return false;
  }

  Broken two_causes(std::uint32_t v, std::uint32_t u) const {
    std::string text;
    for (const std::uint32_t node : {v, u}) {
      const NodeFacts& facts = facts_.nodes[node];
      text += (text.empty() ? "" : ", but ") + name(node) + " ended with " +
              status_name(facts.status) + ", detector " + std::to_string(facts.cause.detector) +
              ", peer " + std::to_string(facts.cause.peer) + " at " +
              std::to_string(facts.ended_ns) + " ns";
    }
    return {"two causes", text};
  }

  const Plan& plan_;
  const Schedule& schedule_;
  const Facts& facts_;
  std::vector<std::vector<bool>> cut_;  // by node and link: what it sends there is lost, or late
  std::set<std::uint32_t> killed_, restarted_, deaf_, pauses_, sleepers_;
  std::set<Pair> damaged_, severed_, outages_;  // links, in both directions
  bool is_corrupt_ = false;                     // the bytes of a message may be corrupt
  std::uint64_t silence_ = 0;     // ns, for which peers may hear nothing of a live node
  std::uint64_t budget_ = 0;      // ns, for which a live cluster may stand still
  std::uint64_t hiccups_ns_ = 0;  // all pauses of all hiccups together
  std::uint64_t hiccup_ns_ = 0, tick_ns_ = 0, slowest_ppm_ = 1'000'000;
};

}  // namespace

Broken broken_promise(const Plan& plan, const Schedule& schedule, const Facts& facts) {
  return Judge(plan, schedule, facts).judge();
}

}  // namespace espalier::storm
