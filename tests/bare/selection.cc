// Four bare-metal nodes boot a selection of allreduces from the images in golden/selection and
// choose by themselves, on either side of a crossover. Their results and logs must have the same
// bytes as those that simulation left.

#include "base/digest.h"
#include "golden_selection.h"
#include "tests/bare/bare_nodes.h"
#include "tests/bare/golden/selection/digests.h"

namespace espalier {
namespace {

using namespace bare_nodes;

constexpr std::uint32_t kSizes[] = {8444,
                                    8448};  // bytes: the last ones of a row, the first of the next
constexpr ImageBytes kImages[kNodes] = {{golden::node_0, sizeof golden::node_0},
                                        {golden::node_1, sizeof golden::node_1},
                                        {golden::node_2, sizeof golden::node_2},
                                        {golden::node_3, sizeof golden::node_3}};

std::uint8_t data[kRoom];

const NodeSelection& selection_of(std::uint32_t v) { return nodes[v].booted.selections[0]; }

void take_hello(std::uint32_t v) {
  const agent::Hello hello = nodes[v].receive_packet().hello;
  CHECK(hello.boot == Status::kOk && hello.node == v);
  nodes[v].receive_data(data, hello.links * std::uint32_t{sizeof(agent::LinkEntry)} +
                                  hello.programs * std::uint32_t{sizeof(agent::ProgramEntry)});
}

// All nodes have one table, and it takes another schedule for each size.
void check_tables() {
  for (std::uint32_t v = 0; v < kNodes; ++v) {
    CHECK_EQ(nodes[v].booted.image.selections, 1u);
    CHECK_EQ(selection_of(v).digest, selection_of(0).digest);
  }
  const SelectionTable& table = selection_of(0).table;
  const SelectionRow* below = find_row(table, kSizes[0], true);
  const SelectionRow* above = find_row(table, kSizes[1], true);
  CHECK(below->program != above->program && above->from_bytes == kSizes[1]);
}

agent::RunRequest request(std::uint32_t v, std::uint32_t number) {
  agent::RunRequest run{.number = number,
                        .schedule = selection_of(v).digest,
                        .count = kSizes[number] / 4,
                        .op = Op::kSum,
                        .type = Type::kF32};
  run.input_bytes = run.output_bytes = kSizes[number];
  run.events = kEventsRoom;
  nodes[v].send_packet(run);
  CHECK_EQ(nodes[v].receive_packet().answer.status, Status::kOk);
  fill_input(v, true, data, (run.input_bytes + 7) / 8 * 8);
  nodes[v].send_data(data, run.input_bytes);
  return run;
}

void run_size(std::uint32_t number) {
  for (std::uint32_t v = 0; v < kNodes; ++v) (void)request(v, number);
  for (std::uint32_t v = 0; v < kNodes; ++v) {
    agent::Go go{.number = number};
    nodes[v].send_packet(go);
  }
  golden::Digests digests = {kDigestSeed, kDigestSeed};
  for (std::uint32_t v = 0; v < kNodes; ++v) {
    const agent::Report report = nodes[v].receive_packet().report;
    CHECK(report.status == Status::kOk && report.completed == 1 && report.log_lost == 0);
    nodes[v].receive_data(data, report.output_bytes);
    digests.results = digest_bytes(digests.results, data, report.output_bytes);
    nodes[v].receive_data(data, report.events * kEventBytes);
    digests.events = digest_bytes(digests.events, data, report.events * kEventBytes);
  }
  bare::Text() << kSizes[number] << " bytes: ";
  checks::compare_digests(digests, golden::kDigests[number]);
}

// A digest that no program and no selection has.
void check_refusal() {
  agent::RunRequest run{.schedule = selection_of(1).digest + 1, .op = Op::kSum, .type = Type::kF32};
  nodes[1].send_packet(run);
  CHECK_EQ(nodes[1].receive_packet().answer.status, Status::kBadArgument);
}

}  // namespace
}  // namespace espalier

int main() {
  using namespace espalier;
  images = kImages;
  signer = golden::key;
  static BareNode made[kNodes] = {BareNode(0), BareNode(1), BareNode(2), BareNode(3)};
  nodes = made;
  for (std::uint32_t v = 0; v < kNodes; ++v) take_hello(v);
  for (std::uint32_t v = 0; v < kNodes; ++v) configure(v);
  check_tables();
  for (std::uint32_t number = 0; number < 2; ++number) run_size(number);
  check_refusal();
  return checks::finish();
}
