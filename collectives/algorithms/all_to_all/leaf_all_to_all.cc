// All-to-all (total exchange) on a fat tree of any capacities, without contention or queues: `leaf`
// and `leaf-serial`.
//
// Let routers of level i have k_i children, and K_i = k_1 ... k_i; [DD96] has equal k_i = k.
// Steps: N * sum over i = 1..h of ceil((k_i - 1) K_(i-1)^2 / c_i) + 2h-1; `leaf-serial`: + h^2
// instead of + 2h-1. Cost: steps * (alpha + beta*m/N), where m is the bytes that one rank sends to
// another. Source: [DD96] section 3.3, formula (2), and for `leaf-serial` Fig. 4 and the formula
// before it. The schedules themselves are new; the paper only refers to a report. c_i are the lanes
// that are used (used_lanes). If a branch of level i+1 has more than k_i times the lanes of those
// below, only k_i times as many are used, because more could never be filled. At most min(64,
// floor(255 / k)) are used, for the largest k = k_i: nodes count no more messages per link and
// step, and per step (step_limits.h). The paper has c_1 = 1.
//
// Stage i = h..1 exchanges between the branches of every router of level i. Let m = K_(i-1). Each
// branch u sends messages q = 0 .. (k_i - 1) m^2 - 1; slot t has messages t c_i to t c_i + c_i - 1.
// With b = floor(q / m), message q goes from the branch's rank rev(q mod m) to rank rev((q + b) mod
// m) of branch u + 1 + floor(b / m). Here rev reverses i-1 digits of a mixed radix: the lowest
// digit of its argument, modulo k_(i-1), is the highest of its result. The messages in flight are
// therefore always spread evenly over all links below. A message that arrives in step s was sent in
// step s - 2i + 1. A stage does all N blocks in turn. In `leaf`, messages of a stage begin to
// arrive in the step after the last arrival of the stage before. In `leaf-serial`, they are sent
// from that step on, so stage i takes 2i-1 steps more than it has slots: h^2 in all.
//
// If the arities differ, message q goes to rank rev((-q - b) mod m) instead. A term reverses digits
// of one radix only, so these trees take more terms. With this rule x + y = -b (mod m) for a rank
// rev(x) that sends to a rank rev(y). The condition is symmetric: a rank sends to and receives from
// the same positions in turn, and both actions share the terms for them. Trees of equal arities
// keep the first rule, because their schedules have had the same digests since version 0.1.0.
//
// Consider a node of level l below level i. Let K = K_(i-1) / K_l, and let r be the node's position
// in its branch, digit-reversed. It sends the messages q = r + K g, g = 0, 1, .. . It receives the
// messages with (q + b) mod K = r, of which each b has K_l: q = K g + ((r - b) mod K),
// b = floor(g / K_l). If the arities differ, this and the following hold with -r instead of r.
//
// Claim: no slot gives a branch of level l + 1 more than its c = c_(l+1) lanes. We have c_i <= c K.
// Upwards, c_i consecutive messages contain at most ceil(c_i / K) with one value r. Downwards there
// are two cases.
//  * c_i = c K: a slot is c whole rows of K messages, each row with one b, and each row has one
//    message for r.
//  * c_i < c K: let B be the number of changes of b, B <= ceil(c / K_l). Each change of b moves the
//    messages for r together by one, and never by more than K - 1 in total. So c + 1 messages for r
//    span at least c K - B + 1 consecutive messages, and c_i <= c K - B keeps them in different
//    slots. For c_1 = 1, where c <= K_l, B is 1.
//
// Actions: 2h + 1 per rank, 2 + 4(h-l) per router. Terms: at most 2 + 3(h-l) per router. Stage i of
// a rank takes one for each run of equal arities among k_1 .. k_(i-1) (two if all arities of the
// tree are equal), two if k_i > 2, and at most two for its steps. In trees of at most 256 ranks
// these are up to 32, and a program has 24. If they do not fit, the lowest stages, as few as
// possible, have an action without terms for each message of a block instead: up to 41 actions.
// kTooLarge if the terms do not fit even then, and if a router forwards more than 2^20 messages per
// block. The terms fit for any k_i and c_i if there are at most 256 ranks, and for equal k_i if all
// branches have one lane.

#include <algorithm>

#include "collectives/algorithms/rows.h"
#include "collectives/algorithms/trees/leaf_tree.h"
#include "espalier/internal/base/arithmetic.h"
#include "espalier/internal/base/assert.h"
#include "espalier/internal/base/step_limits.h"

namespace espalier {
namespace {

// The levels of a tree that check_size() accepts: below 10 levels a router forwards more than 2^20
// messages.
constexpr std::uint32_t kMaxExchangeLevels = 10;

// Whether `lanes` messages per slot of stage `stage` need at most used[] lanes of each branch
// below. `lanes` is at most as many as the branches of the next level have together.
bool spreads(const LeafNode& node, const std::uint32_t* used, std::uint32_t stage,
             std::uint64_t lanes) {
  for (std::uint32_t level = 0; level + 1 < stage; ++level) {
    const std::uint64_t leaves = leaves_below(node, level);
    const std::uint64_t spread = leaves_below(node, stage - 1) / leaves;
    const std::uint64_t room = used[level] * spread;
    const std::uint64_t closer = std::min((used[level] + leaves - 1) / leaves, spread - 1);
    if (lanes != room && lanes + closer > room) return false;
  }
  return true;
}

// The lanes that the schedule uses, by level.
void used_lanes(const CollectiveParameters& parameters, const LeafNode& node, std::uint32_t* used) {
  // A router sends to all branches in a step, or to its parent and down what comes from there.
  std::uint32_t widest = 1;
  for (std::uint32_t level = 1; level <= node.height; ++level) {
    widest = std::max(widest, node.arity(level));
  }
  const std::uint64_t counted = std::min(kMaxLinkMessages, kMaxStepMessages / widest);
  std::uint64_t most = branch_lanes(parameters, 1);
  for (std::uint32_t level = 1; level <= node.height; ++level) {
    std::uint64_t lanes = std::min<std::uint64_t>({most, counted, branch_lanes(parameters, level)});
    while (!spreads(node, used, level, lanes)) --lanes;
    used[level - 1] = static_cast<std::uint32_t>(lanes);
    most = lanes * node.arity(level);
  }
}

class TotalExchange {
 public:
  // The lowest `unrolled` stages of a rank have an action for each message of a block.
  TotalExchange(Builder& builder, const LeafNode& node, const CollectiveParameters& parameters,
                bool serial, std::uint32_t unrolled)
      : builder_(builder),
        node_(node),
        parameters_(parameters),
        serial_(serial),
        unrolled_(unrolled) {
    used_lanes(parameters, node, lanes_);
    for (std::uint32_t level = 2; level <= node.height; ++level) {
      mirrored_ |= node.arity(level) != node.arity(1);
    }
  }

  void add();
  [[nodiscard]] Status finish();

 private:
  // The messages of one kind at this node, in order, over all blocks. Message g is in slot
  // floor((spread * g + offset) / lanes) of its block, offset < spread.
  struct Stream {
    std::uint32_t round;   // messages per block
    std::uint32_t spread;  // K
    std::uint32_t offset = 0;
    bool turns = false;  // the offset decreases by 1 modulo K after `held` messages each
    std::uint32_t held = 1;
    std::uint32_t wide = 1;  // this many consecutive messages come one from each branch
  };

  [[nodiscard]] std::uint32_t capacity(std::uint32_t level) const { return lanes_[level - 1]; }
  // For stage i: m, and the slots per block.
  [[nodiscard]] std::uint32_t branch(std::uint32_t stage) const {
    return leaves_below(node_, stage - 1);
  }
  [[nodiscard]] std::uint32_t messages(std::uint32_t stage) const {
    return (node_.arity(stage) - 1) * branch(stage) * branch(stage);
  }
  [[nodiscard]] std::uint32_t slots(std::uint32_t stage) const {
    return (messages(stage) + capacity(stage) - 1) / capacity(stage);
  }

  // Steps in which no message arrives: up to the first arrival of the stage.
  [[nodiscard]] std::uint32_t ramp(std::uint32_t stage) const {
    const std::uint32_t h = node_.height;
    return serial_ ? h * h - (stage - 1) * (stage - 1) : 2 * h - 1;
  }
  // The position of this node in its branch of the stage's router, digit-reversed: r.
  [[nodiscard]] std::uint32_t position(std::uint32_t stage) const;

  // The offset of the first message that comes down to a node of this position.
  [[nodiscard]] std::uint32_t offset_down(std::uint32_t position, std::uint32_t spread) const {
    return mirrored_ ? (spread - position) % spread : position;
  }

  void add_rank(std::uint32_t stage);
  void add_messages(std::uint32_t stage);
  void add_turn(std::uint32_t stage);
  void add_below_turn(std::uint32_t stage);
  // The ranks that a rank sends to, or receives from, in turn.
  [[nodiscard]] std::uint8_t partners(std::uint32_t stage, bool to);
  // The rank that message `number` of a block goes to, or comes from.
  [[nodiscard]] std::uint32_t partner(std::uint32_t stage, bool to, std::uint32_t number) const;
  // The step of a block's slot: `before` steps before the arrival at the ranks.
  [[nodiscard]] std::uint8_t start(std::uint32_t stage, std::uint32_t before, std::uint32_t slot);
  // Sets the steps of the action: `before` steps before the arrival at the ranks.
  void time(Action& action, std::uint32_t stage, std::uint32_t before, std::uint8_t pace,
            const Stream& stream);
  [[nodiscard]] std::uint8_t pace(std::uint32_t stage, const Stream& stream);
  [[nodiscard]] std::uint8_t block(const Stream& stream);
  // Scratch slots that a stream needs: the slots of a step are free again window + 1 steps later.
  [[nodiscard]] std::uint32_t scratch(std::uint32_t stage, const Stream& stream) const;
  [[nodiscard]] Operand passing(const Stream& stream, std::uint8_t slot);

  Builder& builder_;
  const LeafNode& node_;
  const CollectiveParameters& parameters_;
  bool serial_;  // a stage begins once the stage before has ended
  std::uint32_t unrolled_;
  bool mirrored_ = false;            // the arities differ
  std::uint32_t lanes_[kMaxLevels];  // lanes in use, by level
};

std::uint32_t TotalExchange::position(std::uint32_t stage) const {
  std::uint32_t index = node_.index, reversed = 0;
  for (std::uint32_t level = node_.level + 1; level < stage; ++level) {
    const std::uint32_t radix = node_.arity(level);
    reversed += index % radix * (branch(stage) / leaves_below(node_, level));
    index /= radix;
  }
  return reversed;
}

std::uint8_t TotalExchange::start(std::uint32_t stage, std::uint32_t before, std::uint32_t slot) {
  std::uint32_t earlier = 0;  // slots per block of the earlier stages
  for (std::uint32_t other = stage + 1; other <= node_.height; ++other) earlier += slots(other);
  return builder_.count({.a = as_int(ramp(stage) + slot) - as_int(before),
                         .b = as_int(earlier),
                         .c = 0,
                         .d = 0,
                         .e = 0});
}

void TotalExchange::time(Action& action, std::uint32_t stage, std::uint32_t before,
                         std::uint8_t pace, const Stream& stream) {
  action.t0_ref = start(stage, before, 0);
  action.instances_ref =
      builder_.count({.a = 0, .b = as_int(stream.round), .c = 0, .d = 0, .e = 0});
  action.pace_ref = pace;
}

std::uint8_t TotalExchange::pace(std::uint32_t stage, const Stream& stream) {
  const std::uint32_t lanes = capacity(stage);
  // A block's last slot may have spare lanes: the next block begins with a new slot.
  const std::uint32_t spare = slots(stage) * lanes - messages(stage);
  // If the lanes are a multiple of the spread, the offset does not matter.
  const std::uint32_t unit = lanes % stream.spread == 0 ? stream.spread : 1;
  Index row{};
  row.coef = as_int(stream.spread / unit);
  row.div = lanes / unit * stream.wide;
  Term terms[2];
  std::uint32_t count = 0;
  // First: the rows of both directions follow one another, and share this term.
  if (spare > 0) {
    terms[count++] = floor_term(as_int(spare / unit * stream.wide), 0, stream.round);
  }
  if (unit == 1 && stream.turns) {
    terms[count++] = floor_term(1, as_int(stream.offset * stream.held + stream.held - 1),
                                stream.held, stream.spread, -1);
  } else if (unit == 1) {
    row.off = as_int(stream.offset);
  }
  if (row.coef == 1 && row.div == 1 && row.off == 0 && count == 0) return 0;  // one per step
  return builder_.index(row, terms, count);
}

std::uint8_t TotalExchange::block(const Stream& stream) {
  Index row{};
  row.coef = 1;
  row.div = stream.round;
  return builder_.index(row);
}

std::uint32_t TotalExchange::scratch(std::uint32_t stage, const Stream& stream) const {
  const std::uint32_t lanes = capacity(stage) * (parameters_.window + 1);
  // The offset may decrease by up to spread - 1.
  const bool falls = stream.turns && capacity(stage) % stream.spread != 0;
  return (lanes + (falls ? stream.spread - 1 : 0) + stream.spread - 1) / stream.spread;
}

// In an all-to-all an operand in scratch has the length of any part.
Operand TotalExchange::passing(const Stream& stream, std::uint8_t slot) {
  Operand operand = Builder::operand(Buffer::kScratch, builder_.constant(0));
  operand.block_ref = block(stream);
  operand.slot_ref = slot;
  return operand;
}

std::uint8_t TotalExchange::partners(std::uint32_t stage, bool to) {
  const std::uint32_t k = node_.arity(stage), below = branch(stage), all = below * k;
  const std::uint32_t mine = node_.index / below % k;
  Index row{};
  row.base = as_int(node_.index / all * all);
  row.off = as_int((mine + (to ? 1 : k - 1)) % k * below);
  row.mod = all;
  Term terms[kMaxExchangeLevels];
  std::uint32_t count = 0;
  const Term branches = floor_term(to ? as_int(below) : -as_int(below), 0, below, k - 1);
  // Sends begin with it and receives end with it: they share the terms between, if they are equal.
  if (k > 2 && to) terms[count++] = branches;
  // The digits of levels stage - 1 to 1, the lowest first. A term reverses those of equal radix.
  for (std::uint32_t level = stage - 1; level > 0;) {
    const std::uint32_t above = below / leaves_below(node_, level), radix = node_.arity(level);
    std::uint32_t digits = 0, values = 1;
    for (; level > 0 && node_.arity(level) == radix; --level, ++digits) values *= radix;
    ESPALIER_ASSERT(count < kMaxExchangeLevels);
    terms[count++] = {.coef = as_int(leaves_below(node_, level)),
                      .mul = mirrored_ || !to ? -1 : 1,
                      .add = mirrored_ ? -as_int(position(stage)) : as_int(position(stage)),
                      .div = above > 1 ? above : 0,
                      .mod = values,
                      .base = radix,
                      .digits = digits,
                      .table = 0};
  }
  if (k > 2 && !to) terms[count++] = branches;
  return builder_.index(row, terms, count);
}

std::uint32_t TotalExchange::partner(std::uint32_t stage, bool to, std::uint32_t number) const {
  const std::uint32_t k = node_.arity(stage), below = branch(stage), all = below * k;
  const std::uint32_t away = 1 + number / below, place = position(stage), turn = number % below;
  const std::uint32_t other = (node_.index / below + (to ? away : k - away)) % k;
  std::uint32_t digits = place + (to ? turn : below - turn);
  if (mirrored_) digits = 2 * below - place - turn;
  std::uint32_t rank = node_.index / all * all + other * below;
  for (std::uint32_t level = stage - 1; level > 0; --level) {
    rank += digits % node_.arity(level) * leaves_below(node_, level - 1);
    digits /= node_.arity(level);
  }
  return rank;
}

void TotalExchange::add_rank(std::uint32_t stage) {
  const std::uint32_t below = branch(stage);
  const std::uint32_t place = position(stage);
  const std::uint8_t link = builder_.constant(0);
  const Stream out{.round = (node_.arity(stage) - 1) * below, .spread = below, .offset = place};
  Stream in = out;
  in.turns = true;
  in.offset = offset_down(place, below);
  // Rows that share terms follow one another.
  Operand from = Builder::operand(Buffer::kInput, partners(stage, true));
  Operand into = Builder::operand(Buffer::kOutput, partners(stage, false));
  const std::uint8_t out_pace = pace(stage, out), in_pace = pace(stage, in);
  from.block_ref = into.block_ref = block(out);
  time(builder_.send_by(0, link, from, 0), stage, 2 * stage - 1, out_pace, out);
  time(builder_.receive_by(0, link, into), stage, 0, in_pace, in);
}

// The same with an action for each message of a block, and without terms.
void TotalExchange::add_messages(std::uint32_t stage) {
  const std::uint32_t below = branch(stage), place = position(stage), lanes = capacity(stage);
  const std::uint32_t down = offset_down(place, below);
  const std::uint8_t link = builder_.constant(0);
  Index blocks{};
  blocks.coef = as_int(slots(stage));
  const std::uint8_t pace = slots(stage) == 1 ? 0 : builder_.index(blocks);
  const auto time = [&](Action& action, std::uint32_t before, std::uint32_t message) {
    action.t0_ref = start(stage, before, message / lanes);
    action.pace_ref = pace;
  };
  for (std::uint32_t b = 0; b < (node_.arity(stage) - 1) * below; ++b) {
    const Operand from = builder_.input(partner(stage, true, b));
    time(builder_.send_by(0, link, from, 0), 2 * stage - 1, below * b + place);
    const Operand into = builder_.output(partner(stage, false, b));
    time(builder_.receive_by(0, link, into), 0, below * b + (down + below - b % below) % below);
  }
}

// Adds the router where the messages of this stage change from branch to branch. Instance i is
// message floor(i / k) from branch i mod k.
void TotalExchange::add_turn(std::uint32_t stage) {
  const std::uint32_t k = node_.children();
  const Stream stream{.round = messages(stage) * k, .spread = 1, .wide = k};
  Index slot{}, from{}, to{};
  slot.coef = from.coef = to.coef = 1;
  slot.mod = scratch(stage, stream) * k;
  slot.base = as_int(builder_.scratch(slot.mod));
  from.mod = to.mod = k;
  to.off = 1;
  const Operand operand = passing(stream, builder_.index(slot));
  const std::uint8_t when = pace(stage, stream);
  time(builder_.receive_by(0, builder_.index(from), operand), stage, stage, when, stream);
  const Term turned = floor_term(1, 0, branch(stage) * branch(stage) * k, k - 1);
  time(builder_.send_by(0, builder_.index(to, &turned, k > 2), operand, 1), stage, stage - 1, when,
       stream);
}

// Adds the nodes between the ranks and the router where this stage turns.
void TotalExchange::add_below_turn(std::uint32_t stage) {
  const std::uint32_t level = node_.level;
  const std::uint32_t spread = branch(stage) / node_.leaves;
  const std::uint32_t place = position(stage);
  const std::uint8_t parent = builder_.constant(node_.parent_link());
  const Stream up{.round = messages(stage) / spread, .spread = spread, .offset = place};
  Stream down = up;
  down.offset = offset_down(place, spread);
  down.turns = true;
  down.held = node_.leaves;
  const std::uint8_t up_pace = pace(stage, up), down_pace = pace(stage, down);
  Index slot{}, child{};
  slot.coef = child.coef = 1;
  child.mod = node_.children();
  const auto add = [&](const Stream& stream, std::uint32_t before, std::uint8_t when,
                       std::uint8_t from, std::uint8_t to) {
    slot.mod = scratch(stage, stream);
    slot.base = as_int(builder_.scratch(slot.mod));
    const Operand operand = passing(stream, builder_.index(slot));
    time(builder_.receive_by(0, from, operand), stage, before, when, stream);
    time(builder_.send_by(0, to, operand, 1), stage, before - 1, when, stream);
  };
  // Up: the branch is the digit above those that all its ranks have in common.
  add(up, 2 * stage - level, up_pace, builder_.index(child), parent);
  // Down: the same digit of q + b, which is K g + r + K ceil((b - r) / K). If the arities differ,
  // that of -q - b, which is -(K g - r + K ceil((b + r) / K)).
  const std::int32_t sign = mirrored_ ? -1 : 1;
  child.coef = sign;
  const Term carried =
      floor_term(sign, as_int(node_.leaves * (spread - 1)) - sign * as_int(node_.leaves * place),
                 branch(stage));
  const std::uint8_t branches = builder_.index(child, {carried});
  add(down, level, down_pace, parent, branches);
}

void TotalExchange::add() {
  if (node_.level == 0) {
    builder_.copy(0, builder_.output(node_.index), builder_.input(node_.index));
  }
  for (std::uint32_t stage = node_.height; stage > 0 && stage >= node_.level; --stage) {
    if (node_.level == 0) {
      stage <= unrolled_ ? add_messages(stage) : add_rank(stage);
    } else {
      stage == node_.level ? add_turn(stage) : add_below_turn(stage);
    }
  }
}

Status TotalExchange::finish() {
  std::uint32_t steps = 0, bound = 0, bound_stage = 1;
  for (std::uint32_t stage = 1; stage <= node_.height; ++stage) {
    steps += slots(stage);
    // The messages from a branch to all ranks outside it cross the branch's own link.
    const std::uint64_t crossing = std::uint64_t{branch(stage)} * (node_.ranks - branch(stage)) /
                                   branch_lanes(parameters_, stage);
    if (crossing < bound) continue;
    bound = static_cast<std::uint32_t>(crossing);
    bound_stage = stage;
  }
  builder_.phase(1, as_int(ramp(1)), as_int(steps));
  return builder_.finish(as_int(2 * bound_stage - 1), as_int(bound));
}

// Whether there are lanes, and the schedule's numbers fit into a program.
Status check_size(const CollectiveParameters& parameters, const LeafNode& node) {
  std::uint64_t branch = 1, messages = 0;
  for (std::uint32_t level = 1; level <= node.height; ++level) {
    if (branch_lanes(parameters, level) < 1) return Status::kBadArgument;
    const std::uint64_t k = node.arity(level);
    messages += branch * branch * k * (k - 1);
    branch *= k;
  }
  return messages > kMaxSlope ? Status::kTooLarge : Status::kOk;
}

// Whether the messages of the lowest `stages` stages may fit as actions of a rank.
bool can_unroll(const LeafNode& node, std::uint32_t stages) {
  return node.level == 0 && stages < node.height &&
         2 * leaves_below(node, stages) <= sizeof(Program::actions) / sizeof(Action);
}

Status write(const CollectiveParameters& parameters, const LeafNode& node, std::uint32_t me,
             bool serial, std::uint32_t unrolled, Program& out) {
  Builder builder(out);
  const Status status = builder.begin(parameters, me,
                                      {.collective = Collective::kAllToAll,
                                       .algorithm = serial ? "leaf-serial" : "leaf",
                                       .nodes = leaf_tree_nodes(node),
                                       .port_model = PortModel::kMultiport});
  if (status != Status::kOk) return status;
  add_leaf_links(builder, node);
  TotalExchange exchange(builder, node, parameters, serial, unrolled);
  exchange.add();
  return exchange.finish();
}

template <bool kSerial>
Status leaf_all_to_all(const CollectiveParameters& parameters, std::uint32_t me, Collective,
                       Program& out) {
  LeafNode node;
  Status status = find_leaf_node(parameters, me, node);
  if (status == Status::kOk) status = check_size(parameters, node);
  if (status != Status::kOk) return status;
  status = write(parameters, node, me, kSerial, 0, out);
  // The fewest actions for which the tables are large enough.
  for (std::uint32_t unrolled = 1; status == Status::kTooLarge && can_unroll(node, unrolled);
       ++unrolled) {
    status = write(parameters, node, me, kSerial, unrolled, out);
  }
  return status;
}

}  // namespace

const Algorithm kLeafAllToAllRows[] = {
    row("leaf", Collective::kAllToAll, leaf_all_to_all<false>,
        "multiport, without queues: N*sum of ceil((k-1)k^(2i-2)/c_i) + 2h-1 steps, at most k "
        "c_(i-1) lanes used",
        {.where = Where::kFatTree}),
    row("leaf-serial", Collective::kAllToAll, leaf_all_to_all<true>,
        "level after level, without queues: N*sum of ceil((k-1)k^(2i-2)/c_i) + h^2 steps, at most "
        "k c_(i-1) lanes used",
        {.where = Where::kFatTree}),
};

}  // namespace espalier
