#include "tests/spares/testing/recovering_cluster.h"

#include <map>

#include "tests/hil/spares_reference.h"

namespace espalier::testing {
const Library& library(const std::string& spec) {
  static std::map<std::string, std::unique_ptr<Library>> made;
  std::unique_ptr<Library>& one = made[spec];
  if (one == nullptr) one = std::make_unique<Library>(spec);
  return *one;
}

std::unique_ptr<World> make_world(const Scenario& scenario, const World::Links& links) {
  if (!scenario.framed) {
    sim::Model model{.one_port = false,
                     .eager_bytes = scenario.eager_bytes,
                     .poison = true,
                     .generations = kGenerations};
    return simulated_world(links, model);
  }
  serial::CarrierFaults faults;
  faults.lose = faults.damage = 0.01;
  faults.repeat = faults.delay = 0.1;
  faults.seed = static_cast<unsigned>(scenario.moment + 1);
  return framed_world(links, kGenerations, faults);
}

NodeUnderTest::NodeUnderTest(ClusterUnderTest& cluster, std::uint32_t node, bool returns)
    : comes_back(returns),
      recovery(machine_, cluster.world->endpoint(node), *this, cluster.world->deadline_ns()),
      cluster_(cluster),
      node_(node),
      image_(cluster.programs.image(node)),
      programs_(image_.programs) {
  for (std::uint32_t i = 0; i < image_.programs; ++i) {
    EXPECT_EQ(image_.load(i, programs_[i]), Status::kOk);
  }
  MachineConfig config{.deadline_ns = cluster.world->deadline_ns()};
  EXPECT_EQ(machine_.init(cluster.world->endpoint(node), config), Status::kOk);
  if (!comes_back) return;
  EXPECT_EQ(recovery.come_back(), Status::kBusy);
  recovering_ = true;
}

SpareKinds NodeUnderTest::kinds() const { return cluster_.scenario.kinds; }

const Program* NodeUnderTest::load(const Loss& loss) {
  spare_ = image_.find_spare(loss);
  if (spare_ == image_.spares) return nullptr;
  return image_.load_spare(spare_, 0, programs_[0]) == Status::kOk ? &programs_[0] : nullptr;
}

Endpoint* NodeUnderTest::open(std::uint32_t generation) {
  if (generation >= kGenerations) return nullptr;
  if (!cluster_.world->reopen(node_, generation)) return nullptr;
  return &cluster_.world->endpoint(node_);
}

std::uint64_t NodeUnderTest::next_deadline() const {
  if (ended) return UINT64_MAX;
  return recovering_ ? recovery.next_deadline() : machine_.next_deadline();
}

void NodeUnderTest::poll() {
  if (ended) {
    if (!recovery.expelled()) (void)machine_.poll();
    return;
  }
  status = recovering_ ? recovery.poll() : machine_.poll();
  if (status == Status::kBusy) return;
  if (status != Status::kOk) return failed();
  if (recovering_) {
    recovering_ = false;
    switched = true;
    spare_ = image_.find_spare(recovery.loss());
    for (std::uint32_t i = 0; i < image_.programs; ++i) {
      const Status loaded = image_.load_spare(spare_, 1 + i, programs_[i]);
      EXPECT_TRUE(loaded == Status::kOk || loaded == Status::kUnsupported);
    }
    if (recovery.point().next < number) repeated += number - recovery.point().next;
    number = recovery.point().next;
    if (generation_ != recovery.generation()) {
      from = number;
      looked_ = UINT32_MAX;  // all look before this collective
    }
    generation_ = recovery.generation();
  } else if (running_) {
    running_ = false;
    check();
    ++number;
  }
  if (number < cluster_.last(node_)) start();
}

void NodeUnderTest::failed() {
  if (!recovering_) {
    const Keeps keeps = cluster_.scenario.keeps;
    const std::uint32_t repeatable = keeps == Keeps::kAll       ? 0
                                     : keeps == Keeps::kPresent ? number
                                     : running_                 ? number + 1
                                                                : number;
    status = recovery.begin({number, repeatable});
    running_ = false;
    recovering_ = status == Status::kBusy;
  }
  ended = status != Status::kBusy;
}

void NodeUnderTest::start() {
  if (cluster_.scenario.comes_back && switched && number % kLookEvery == 0 && number != looked_) {
    looked_ = number;
    status = recovery.look(number);
    recovering_ = status == Status::kBusy;
    if (recovering_) return;
    ASSERT_EQ(status, Status::kOk);
  }
  const std::size_t which = number % std::size(kSteps);
  const Program& program = programs_[which];
  if (program.ranks == 0) {  // its root is lost: all leave it out
    ++number;
    if (number < cluster_.last(node_)) start();
    return;
  }
  const std::uint64_t count = kSteps[which].count;
  Operator op{.op = Op::kSum, .type = Type::kU32};
  Layout layout;
  EXPECT_EQ(make_layout(program, count, element_bytes(op), layout), Status::kOk);
  memory_.allocate(program, layout);
  std::uint8_t* const input = memory_.input().data();
  for (std::uint64_t i = 0; i < memory_.input().size() / 4; ++i) {
    store_u32(input + 4 * i, input_at(number, node_, i));
  }
  status = machine_.start(program, memory_.buffers(), op, count);
  running_ = status == Status::kOk;
  if (!running_) failed();
}

// Compares the result with the plain reference: what the nodes that took part gave.
void NodeUnderTest::check() {
  const Step& step = kSteps[number % std::size(kSteps)];
  const ReferenceRun run = {step.collective,
                            step.root,
                            step.count,
                            number,
                            cluster_.programs.topology().ranks(),
                            switched ? recovery.loss() : Loss()};
  if (wrong.empty()) wrong = wrong_result(run, node_, memory_.output().data());
  if (wrong.empty() && !memory_.guards_are_intact()) wrong = "it wrote outside its buffers";
}

}  // namespace espalier::testing
