#include "tests/random/recipes.h"

#include <memory>
#include <numeric>

#include "tests/random/moves.h"

namespace espalier::random {
namespace {

using Cell = Moves::Cell;
using Emit = std::function<void(Sketch&, std::uint32_t segment, std::uint32_t block)>;

class Cook {
 public:
  Cook(const Plan& plan, bool hop_by_hop, bool neighbours, Dice& dice)
      : plan_(plan),
        dice_(dice),
        moves_(plan, hop_by_hop, neighbours, dice),
        middle_(dice.number(0, moves_.ranks() - 1)) {}

  std::vector<Part> cook() {
    Nodes segments(plan_.segments);
    std::iota(segments.begin(), segments.end(), 0u);
    const bool halves = plan_.segments == moves_.ranks() && plan_.pipelined && dice_.one_in(2);
    const auto in_turn = [&](const Emit& first, const Emit& then) {
      return std::vector<Part>{{segments, first}, {segments, then}};
    };
    if (plan_.collective == Collective::kBroadcast && halves) {
      return in_turn(scatter(), allgather());
    }
    if (plan_.collective == Collective::kAllreduce) {
      if (halves) return in_turn(reduce(true), allgather());
      if (plan_.pipelined && dice_.one_in(2)) return in_turn(reduce(false), broadcast());
    }
    // Several segments: one call for all of them.
    if (!plan_.pipelined && moves_.is_free() && !dice_.one_in(3)) {
      if (plan_.collective == Collective::kScatter) return {{{0}, runs(true)}};
      if (plan_.collective == Collective::kGather) return {{{0}, runs(false)}};
    }
    return {{segments, in_one()}};
  }

 private:
  Emit in_one() {
    switch (plan_.collective.value()) {
      case Collective::kBroadcast: return broadcast();
      case Collective::kAllreduce: return allreduce();
      case Collective::kReduce: return reduce(false);
      case Collective::kReduceScatter: return reduce(true);
      case Collective::kScatter: return scatter();
      case Collective::kGather: return gather();
      case Collective::kAllgather: return allgather();
      case Collective::kScan: return scan();
      case Collective::kExscan: return exscan();
      case Collective::kAllToAll: return all_to_all();
      default: return barrier();
    }
  }

  // In a broadcast, from the root; in an allreduce, from the rank that has the sum in its output.
  Emit broadcast() {
    return [this](Sketch& sketch, std::uint32_t segment, std::uint32_t block) {
      Spool spool = moves_.spool(sketch, segment, block);
      const bool first = plan_.collective == Collective::kBroadcast;
      const std::uint32_t root = first ? plan_.root : middle_;
      moves_.down(spool, root, moves_.given(spool, root, !first), moves_.all_ranks(), true);
    };
  }

  // Reduces to the root, to the segment's rank, or to any rank.
  Emit reduce(bool to_segments_rank) {
    return [=, this](Sketch& sketch, std::uint32_t segment, std::uint32_t block) {
      Spool spool = moves_.spool(sketch, segment, block);
      const bool rooted = plan_.collective == Collective::kReduce;
      const std::uint32_t root = to_segments_rank ? segment : rooted ? plan_.root : middle_;
      (void)moves_.up(spool, root, moves_.result(spool, root));
    };
  }

  Emit allreduce() {
    return [first = reduce(false), then = broadcast()](Sketch& sketch, std::uint32_t segment,
                                                       std::uint32_t block) {
      first(sketch, segment, block);
      then(sketch, segment, block);
    };
  }

  // In a scatter, to each segment's rank; as a stage of a broadcast, into the output of the
  // segment's rank.
  Emit scatter() {
    return [this](Sketch& sketch, std::uint32_t segment, std::uint32_t block) {
      Spool spool = moves_.spool(sketch, segment, block);
      const Cell source = moves_.given(spool, plan_.root, false);
      if (segment != plan_.root) {
        moves_.path(spool, plan_.root, segment, source, moves_.result(spool, segment));
      } else if (plan_.collective == Collective::kScatter) {
        sketch.copy(source, moves_.result(spool, segment));
      }
    };
  }

  Emit gather() {
    return [this](Sketch& sketch, std::uint32_t segment, std::uint32_t block) {
      Spool spool = moves_.spool(sketch, segment, block);
      const Cell source = moves_.given(spool, segment, false);
      const Cell final = moves_.result(spool, plan_.root);
      if (segment == plan_.root) {
        sketch.copy(source, final);
      } else {
        moves_.path(spool, segment, plan_.root, source, final);
      }
    };
  }

  // As a stage of another collective, it gathers the data that the previous stage left in the
  // outputs.
  Emit allgather() {
    return [this](Sketch& sketch, std::uint32_t segment, std::uint32_t block) {
      Spool spool = moves_.spool(sketch, segment, block);
      const bool alone = plan_.collective == Collective::kAllgather;
      const Cell source = moves_.given(spool, segment, !alone);
      if (alone) sketch.copy(source, moves_.result(spool, segment));
      moves_.down(spool, segment, source, moves_.all_ranks(), true);
    };
  }

  std::vector<Cell> prefixes(Spool& spool, std::uint32_t ranks) {
    std::vector<Cell> prefix;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      prefix.push_back(moves_.given(spool, rank, false));
    }
    moves_.prefixes(spool, 0, ranks, prefix);
    return prefix;
  }

  Emit scan() {
    return [this](Sketch& sketch, std::uint32_t segment, std::uint32_t block) {
      Spool spool = moves_.spool(sketch, segment, block);
      const std::vector<Cell> prefix = prefixes(spool, moves_.ranks());
      sketch.copy(prefix[0], moves_.result(spool, 0));
    };
  }

  // Each rank but the last passes its prefix to the next rank, whose result it is.
  Emit exscan() {
    return [this](Sketch& sketch, std::uint32_t segment, std::uint32_t block) {
      Spool spool = moves_.spool(sketch, segment, block);
      const std::vector<Cell> prefix = prefixes(spool, moves_.ranks() - 1);
      for (std::uint32_t rank = 0; rank + 1 < moves_.ranks(); ++rank) {
        moves_.path(spool, rank, rank + 1, prefix[rank], moves_.result(spool, rank + 1));
      }
    };
  }

  Emit all_to_all() {
    return [this](Sketch& sketch, std::uint32_t from, std::uint32_t block) {
      for (std::uint32_t to = 0; to < moves_.ranks(); ++to) {
        const Cell source = sketch.caller(from, Buffer::kInput, to, block);
        const Cell final = sketch.caller(to, Buffer::kOutput, from, block);
        // On the way, the spool's segment only gives the length.
        Spool spool = moves_.spool(sketch, dice_.one_in(2) ? from : to, block);
        if (from == to) {
          sketch.copy(source, final);
        } else {
          moves_.path(spool, from, to, source, final);
        }
      }
    };
  }

  Emit barrier() {
    return [this](Sketch& sketch, std::uint32_t segment, std::uint32_t block) {
      Spool spool = moves_.spool(sketch, segment, block);
      const Cell sum = moves_.up(spool, middle_, -1);
      moves_.down(spool, middle_, sum, moves_.all_ranks(), false);
    };
  }

  Emit runs(bool spread) {
    return [=, this](Sketch& sketch, std::uint32_t segment, std::uint32_t block) {
      Spool spool = moves_.spool(sketch, segment, block);
      const std::uint32_t root = plan_.root, ranks = moves_.ranks();
      const Buffer buffer = spread ? Buffer::kInput : Buffer::kOutput;
      const Cell held = sketch.caller(root, buffer, 0, 0, false, ranks);
      if (spread) {
        moves_.spread_runs(spool, 0, ranks, root, held, 0);
      } else {
        moves_.gather_runs(spool, 0, ranks, root, held, 0);
      }
    };
  }

  const Plan& plan_;
  Dice& dice_;
  Moves moves_;
  std::uint32_t middle_ = 0;  // of an allreduce or a barrier: the rank that has the sum first
};

}  // namespace

std::vector<Part> make_recipe(const Plan& plan, bool hop_by_hop, bool neighbours, Dice& dice) {
  const auto cook = std::make_shared<Cook>(plan, hop_by_hop, neighbours, dice);
  std::vector<Part> parts = cook->cook();
  for (Part& part : parts) {
    part.emit = [cook, emit = part.emit](Sketch& sketch, std::uint32_t segment,
                                         std::uint32_t block) { emit(sketch, segment, block); };
  }
  // Segments may take their stages apart.
  if (parts.size() == 1 && parts[0].segments.size() > 1 && plan.pipelined && dice.one_in(4)) {
    const std::uint32_t many =
        dice.number(1, static_cast<std::uint32_t>(parts[0].segments.size()) - 1);
    parts.push_back(parts[0]);
    parts[0].segments.resize(many);
    parts[1].segments.erase(parts[1].segments.begin(), parts[1].segments.begin() + many);
  }
  return parts;
}

}  // namespace espalier::random
