#include "tests/random/encode.h"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <tuple>
#include <utility>

#include "espalier/collectives/verify/verify.h"
#include "tests/random/action.h"
#include "tests/random/rows.h"

namespace espalier::random {
namespace {

constexpr std::int64_t kMaxStride = 12;  // so that proofs stay short

// Whether one action can stand for both.
bool are_alike(const Member& a, const Member& b) {
  const auto key = [](const Member& member) {
    const Progression& one = *member.of;
    return std::tuple(one.kind, one.stage, one.after, one.segment_count, one.into.buffer,
                      one.a.buffer, one.b.buffer, member.more);
  };
  return key(a) == key(b);
}

// The values that are the same on all nodes of a schedule.
struct Common {
  std::vector<std::int64_t> periods;  // by phase
  std::uint64_t digest = 0;
  std::uint8_t block_rules = 1;
  bool ring_peers = false;
  bool own_period = false;  // some node has another period
  // Beyond these limits a node's actions are written as shortly as possible.
  std::int64_t max_actions = 40;
  std::uint32_t max_terms = 16;
  bool twins = false;  // nodes differ only in which actions have a pace
  Count bound{};
};

class Encoder {
 public:
  Encoder(const Plan& plan, std::uint32_t node, const Common& common, Choice& choice)
      : plan_(plan),
        part_(plan.nodes[node]),
        node_(node),
        common_(common),
        choice_(choice),
        rows_(program_, choice) {}

  std::optional<OwnedProgram> encode(Rounds& rounds) {
    write_header();
    (void)rows_.constant(0);  // takes position 0, which as a pace_ref means "no pace"
    write_peers();
    for (std::uint32_t phase = 0; phase < plan_.phase_steps.size(); ++phase) write_phase(phase);
    program_.steps_ref = rows_.count(plan_.steps, true);
    program_.bound_ref = rows_.count(common_.bound, true);
    if (rows_.failed() || full_) return std::nullopt;
    if (!rows_.table().empty()) program_.set_table(rows_.table());
    rounds = rounds_;
    for (auto* one : {&rounds.strides, &rounds.instances, &rounds.paces}) {
      std::sort(one->begin(), one->end());
      one->erase(std::unique(one->begin(), one->end()), one->end());
    }
    return program_;
  }

 private:
  void write_header() {
    program_.format_version = kFormatVersion;
    program_.topology_digest = plan_.topology->digest();
    program_.schedule_digest = common_.digest;
    std::snprintf(program_.algorithm, sizeof program_.algorithm, "random");
    std::snprintf(program_.producer, sizeof program_.producer, "tests/random");
    program_.collective = plan_.collective;
    program_.ranks = plan_.topology->ranks();
    program_.node = node_;
    const auto nodes = static_cast<std::uint32_t>(plan_.nodes.size());
    program_.nodes = nodes == program_.ranks ? 0 : nodes;
    program_.root = plan_.root;
    program_.needs_commutative = plan_.needs_commutative;
    program_.window = plan_.window;
    program_.scratch_blocks = part_.scratch + (choice_.one_in(10) ? 1 : 0);
    program_.port_model = plan_.ports;
    program_.contention = plan_.contention;
    program_.send_ticks = plan_.send_ticks;
    program_.latency_ticks = plan_.latency_ticks;
    program_.segments = plan_.segments;
    program_.residue_mod = plan_.residue_mod;
    program_.residue = plan_.residue;
    program_.blocks_count = common_.block_rules;
    program_.blocks[common_.block_rules - 1] = {common_.block_rules == 1 ? 0u : 4096u,
                                                plan_.pipelined ? 1024u : 0u};
  }

  void write_peers() {
    links_.assign(plan_.nodes.size(), -1);
    if (common_.ring_peers) {
      program_.ring_peers = program_.ranks - 1;
      for (std::uint32_t peer = 0; peer < program_.ranks; ++peer) {
        links_[peer] = (peer + program_.ranks - node_ - 1) % program_.ranks;
      }
      return;
    }
    std::vector<std::uint32_t> peers;
    for (const Progression& one : part_.all) {
      const bool transfer = one.kind == ActionKind::kSend || one.kind == ActionKind::kReceive;
      const auto at = transfer ? std::find(peers.begin(), peers.end(), one.peer) : peers.end();
      if (!transfer || at != peers.end()) continue;
      peers.insert(peers.begin() + choice_.number(0, static_cast<std::uint32_t>(peers.size())),
                   one.peer);
    }
    for (const std::uint32_t peer : peers) {
      links_[peer] = program_.peers_count;
      program_.peers[program_.peers_count++] = peer;
    }
  }

  void write_phase(std::uint32_t phase) {
    period_ = common_.periods[phase];
    if (common_.own_period && choice_.one_in(2)) period_ = 1;
    written_.clear();
    choice_.go_to(1000 * (phase + 1));
    for (std::uint32_t stage = 0; stage < plan_.stages.size(); ++stage) {
      if (plan_.stages[stage].phase == phase) write_stage(stage);
    }
    choice_.go_to(1000 * (phase + 1) + 1);
    for (std::size_t i = written_.size(); i > 1; --i) {
      std::swap(written_[i - 1], written_[choice_.number(0, static_cast<std::uint32_t>(i) - 1)]);
    }
    order_lanes();
    for (const Written& one : written_) {
      full_ = full_ || program_.actions_count == std::size(program_.actions);
      if (!full_) program_.actions[program_.actions_count++] = one.action;
      const Member& member = one.draft.members[0];
      rounds_.strides.push_back(member.stride);
      rounds_.instances.push_back(one.draft.instances() * 720 / member.stride);
      rounds_.paces.push_back(one.draft.paced() ? member.pace : 0);
    }
    program_.phases[phase].period = static_cast<std::uint32_t>(period_);
    program_.phases[phase].steps_ref = rows_.count(plan_.phase_steps[phase], true);
    program_.phases[phase].actions = static_cast<std::uint8_t>(written_.size());
    ++program_.phases_count;
  }

  // Messages of a link of several lanes that share a step meet in the order of the actions.
  [[nodiscard]] std::vector<const Progression*> sharing(const Progression& one) const {
    std::vector<const Progression*> all;
    if (one.kind != ActionKind::kSend && one.kind != ActionKind::kReceive) return all;
    const std::int64_t pace = plan_.stages[one.stage].pace;
    for (const Progression& other : part_.all) {
      const bool share = other.kind == one.kind && other.peer == one.peer &&
                         other.stage == one.stage && (other.first - one.first) % pace == 0;
      if (share) all.push_back(&other);
    }
    return all;
  }

  void write_stage(std::uint32_t stage) {
    const std::int64_t stride = plan_.stages[stage].stride;
    static constexpr std::int64_t kMore[] = {1, 1, 1, 1, 1, 2, 2, 3};
    const auto choose_more = [&] {
      const std::int64_t more = plan_.pipelined ? kMore[choice_.number(0, 7)] : 1;
      const bool room = more * static_cast<std::int64_t>(part_.all.size()) <= common_.max_actions;
      return more * stride > kMaxStride || !room ? 1 : more;
    };
    const std::int64_t common = choose_more();
    std::vector<Member> loose;
    for (const Progression& one : part_.all) {
      if (one.stage != stage) continue;
      const std::int64_t more = choice_.one_in(12) ? choose_more() : common;
      for (std::int64_t turn = 0; turn < more; ++turn) loose.push_back(member(one, more, turn));
    }
    for (std::size_t i = loose.size(); i > 1; --i) {
      std::swap(loose[i - 1], loose[choice_.number(0, static_cast<std::uint32_t>(i) - 1)]);
    }
    for (mark_ = 100000 * (stage + 1); !loose.empty() && !full_; mark_ += 10) {
      choice_.go_to(mark_);
      write_next(loose);
    }
  }

  [[nodiscard]] Member member(const Progression& one, std::int64_t more, std::int64_t turn) const {
    const Stage& stage = plan_.stages[one.stage];
    return Member{.of = &one,
                  .more = more,
                  .turn = turn,
                  .first = one.first + stage.pace * turn,
                  .block = one.block + stage.stride * turn,
                  .stride = stage.stride * more,
                  .pace = stage.pace * more};
  }

  // Takes the last of the loose members, and some that can share an action with it.
  void write_next(std::vector<Member>& loose) {
    const Member first = loose.back();
    loose.pop_back();
    const std::size_t shared = sharing(*first.of).size();
    const bool merge = choice_.one_in(2);
    const bool paced = common_.twins ? choice_.own_one_in(2) : choice_.one_in(2);
    const std::uint32_t most = choice_.one_in(3) ? 64 : choice_.number(1, 4);
    std::vector<Member> with;
    for (std::size_t i = loose.size(); i-- > 0 && merge;) {
      const Member& other = loose[i];
      if (with.size() + 1 >= most || !are_alike(first, other)) continue;
      if (shared > 1 || sharing(*other.of).size() > 1) continue;
      with.push_back(other);
    }
    // The members that share a step with the first: all of them, or none.
    const bool bundle = shared > 1 && choice_.one_in(2) && find_bundle(first, loose, with);
    const bool together = !with.empty() && write(first, with, paced || bundle, bundle, false);
    if (!together) {
      // The member alone; in the last attempt with as few rows as possible.
      with.clear();
      const bool plain = first.pace != period_;
      full_ = !write(first, with, paced, false, false) &&
              !write(first, with, !paced, false, false) &&
              !write(first, with, plain, false, true) && !write(first, with, !plain, false, true);
    }
    std::erase_if(loose, [&](const Member& one) {
      return std::any_of(with.begin(), with.end(), [&](const Member& taken) {
        return taken.of == one.of && taken.turn == one.turn;
      });
    });
  }

  bool find_bundle(const Member& first, const std::vector<Member>& loose,
                   std::vector<Member>& with) const {
    for (const Progression* other : sharing(*first.of)) {
      if (other == first.of) continue;
      const auto at = std::find_if(loose.begin(), loose.end(), [&](const Member& one) {
        return one.of == other && one.turn == first.turn && one.first == first.first;
      });
      if (at == loose.end() || !are_alike(first, *at)) {
        with.clear();
        return false;
      }
      with.push_back(*at);
    }
    return true;
  }

  // Whether there is a way, and room for it.
  bool write(const Member& first, const std::vector<Member>& with, bool paced, bool bundle,
             bool plain) {
    ActionDraft draft(plan_, part_, period_, plain);
    draft.members = with;
    draft.members.push_back(first);
    if (bundle) {
      std::sort(draft.members.begin(), draft.members.end(),
                [](const Member& a, const Member& b) { return a.of->message < b.of->message; });
    }
    choice_.go_to(mark_ + 1);
    if (!(paced ? draft.lay_out_paced(choice_) : draft.lay_out_evenly(choice_))) return false;
    // If the tables are nearly full, only layouts that need no terms.
    const bool scarce = program_.terms_count > common_.max_terms && !plain;
    if (scarce && (draft.instances() > 1 || !with.empty())) return false;
    const RowWriter::Mark before = rows_.mark();
    const std::optional<Action> action = draft.write(rows_, links_, choice_, mark_ + 2);
    if (action) {
      written_.push_back({*action, draft});
    } else {
      rows_.go_back(before);
    }
    return action.has_value();
  }

  void order_lanes() {
    std::vector<std::size_t> places;
    std::vector<Written> ordered;
    for (std::size_t i = 0; i < written_.size(); ++i) {
      if (sharing(*written_[i].draft.members[0].of).size() < 2) continue;
      places.push_back(i);
      ordered.push_back(written_[i]);
    }
    std::stable_sort(ordered.begin(), ordered.end(), [](const Written& a, const Written& b) {
      return a.draft.members[0].of->message < b.draft.members[0].of->message;
    });
    for (std::size_t i = 0; i < places.size(); ++i) written_[places[i]] = ordered[i];
  }

  const Plan& plan_;
  const NodePlan& part_;
  std::uint32_t node_;
  const Common& common_;
  Choice& choice_;
  OwnedProgram program_;
  RowWriter rows_;
  std::vector<std::int64_t> links_;  // by node: its position among the peers
  struct Written {
    Action action{};
    ActionDraft draft;
  };
  std::vector<Written> written_;  // of the current phase
  std::int64_t period_ = 1;
  std::uint64_t mark_ = 0;  // of the choices for the next action
  bool full_ = false;       // a table has no room
  Rounds rounds_;
};

std::int64_t choose_period(const Plan& plan, std::uint32_t phase, Dice& dice) {
  std::int64_t common = 0;
  for (const Stage& stage : plan.stages) {
    if (stage.phase == phase) common = std::gcd(common, stage.pace);
  }
  std::vector<std::int64_t> divisors;
  for (std::int64_t by = 1; by <= common; ++by) {
    if (common % by == 0) divisors.push_back(by);
  }
  if (dice.one_in(3)) return 1;
  return divisors[dice.number(0, static_cast<std::uint32_t>(divisors.size()) - 1)];
}

}  // namespace

bool Encoded::differ() const {
  const Rounds* first = nullptr;
  for (const Rounds& one : rounds) {
    if (one.strides.empty()) continue;  // it does nothing
    if (first != nullptr && !(one == *first)) return true;
    first = &one;
  }
  return false;
}

namespace {

std::optional<Encoded> encode_as(const Plan& plan, const Common& common, Dice& dice) {
  // The share of choices that a node makes on its own: from all (1) to one in 16.
  static constexpr std::uint32_t kOwn[] = {1, 1, 1, 2, 4, 16};
  const std::uint32_t own_share = common.twins ? 0 : kOwn[dice.number(0, 5)];
  const std::uint64_t shared = dice.number(1, 1u << 30);
  Encoded encoded;
  for (std::uint32_t node = 0; node < plan.nodes.size(); ++node) {
    Choice choice(shared, dice.number(1, 1u << 30), own_share);
    Rounds rounds;
    const auto program = Encoder(plan, node, common, choice).encode(rounds);
    if (!program) return std::nullopt;
    encoded.programs.push_back(*program);
    encoded.rounds.push_back(rounds);
  }
  return encoded;
}

}  // namespace

std::optional<Encoded> encode(const Plan& plan, Dice& dice) {
  Common common;
  common.digest = dice.number(1, 1u << 30);
  common.ring_peers = plan.topology->spec().starts_with("complete") && dice.one_in(6);
  common.own_period = dice.one_in(50);
  common.bound.a = 1;
  common.block_rules = plan.pipelined && dice.one_in(4) ? 2 : 1;  // short messages: one block
  for (int tried = 0; tried < 3; ++tried) {
    if (tried == 2) common.max_actions = common.max_terms = 0;
    common.twins = dice.one_in(plan.regular ? 2 : 10);
    common.periods.clear();
    for (std::uint32_t phase = 0; phase < plan.phase_steps.size(); ++phase) {
      common.periods.push_back(choose_period(plan, phase, dice));
    }
    std::optional<Encoded> encoded = encode_as(plan, common, dice);
    if (encoded) return encoded;
  }
  return std::nullopt;
}

}  // namespace espalier::random
