// Four bare-metal nodes run every collective from the images in golden/. Their results and logs
// must have the same bytes as those that simulation left.

#include <cstring>

#include "base/digest.h"
#include "golden.h"
#include "tests/bare/bare_nodes.h"
#include "tests/bare/golden/digests.h"

namespace espalier {
namespace {

using namespace bare_nodes;

constexpr std::uint32_t kPrograms = 11;
constexpr ImageBytes kImages[kNodes] = {{golden::node_0, sizeof golden::node_0},
                                        {golden::node_1, sizeof golden::node_1},
                                        {golden::node_2, sizeof golden::node_2},
                                        {golden::node_3, sizeof golden::node_3}};

std::uint8_t data[kRoom];

void check_hello(std::uint32_t v) {
  const agent::Hello hello = nodes[v].receive_packet().hello;
  CHECK(hello.kind == agent::Kind::kHello && hello.version == agent::kVersion);
  CHECK(hello.boot == Status::kOk && hello.trial == 1 && hello.signature_checked == 1);
  CHECK(hello.node == v && hello.nodes == kNodes && hello.release == 0x01020003);
  CHECK(hello.links == kNodes - 1 && hello.programs == kPrograms);
  CHECK_EQ(std::memcmp(hello.digest, kImages[v].bytes + kImageDigestAt, kDigestBytes), 0);
  nodes[v].receive_data(data, hello.links * std::uint32_t{sizeof(agent::LinkEntry)} +
                                  hello.programs * std::uint32_t{sizeof(agent::ProgramEntry)});
  agent::LinkEntry link;
  std::memcpy(&link, data, sizeof link);
  CHECK_EQ(link.peer, v == 0 ? 1u : 0u);
  agent::ProgramEntry program;
  std::memcpy(&program, data + hello.links * sizeof link, sizeof program);
  CHECK_EQ(program.schedule, nodes[v].booted.programs[0].schedule_digest);
}

agent::RunRequest order_run(std::uint32_t v, std::uint32_t which) {
  const Program& program = nodes[v].booted.programs[which];
  const bool barrier = program.collective == Collective::kBarrier;
  const bool per_rank = counts_per_rank(program.collective);
  const bool adds =
      program.collective == Collective::kReduce || program.collective == Collective::kAllreduce ||
      program.collective == Collective::kScan || program.collective == Collective::kExscan ||
      program.collective == Collective::kReduceScatter;
  const std::uint32_t bytes = barrier ? 0 : per_rank ? 6000 : 24000;
  const std::uint32_t whole = per_rank ? bytes * kNodes : bytes;
  agent::RunRequest run;
  run.number = which + 1;
  run.schedule = program.schedule_digest;
  run.op = adds ? Op::kSum : Op::kNone;
  run.type = adds ? Type::kF32 : Type::kBytes;
  run.count = adds ? bytes / 4 : bytes;
  run.input_bytes = bytes_of(buffer_extent(program, Buffer::kInput), bytes, whole);
  run.output_bytes = bytes_of(buffer_extent(program, Buffer::kOutput), bytes, whole);
  run.events = kEventsRoom;
  nodes[v].send_packet(run);
  const agent::Answer answer = nodes[v].receive_packet().answer;
  CHECK(answer.to == agent::Kind::kRun && answer.number == run.number);
  if (!CHECK_EQ(answer.status, Status::kOk)) {
    bare::Text() << "  " << status_name(answer.status) << "\n";
  }
  fill_input(v, adds, data, run.input_bytes);
  nodes[v].send_data(data, run.input_bytes);
  return run;
}

void run_collective(std::uint32_t which) {
  agent::RunRequest runs[kNodes];
  for (std::uint32_t v = 0; v < kNodes; ++v) runs[v] = order_run(v, which);
  for (std::uint32_t v = 0; v < kNodes; ++v) {
    agent::Go go{.number = runs[v].number};
    nodes[v].send_packet(go);
  }
  golden::Digests digests = {kDigestSeed, kDigestSeed};
  for (std::uint32_t v = 0; v < kNodes; ++v) {
    const agent::Report report = nodes[v].receive_packet().report;
    CHECK(report.kind == agent::Kind::kReport && report.number == runs[v].number);
    CHECK(report.status == Status::kOk && report.completed == 1 && report.log_lost == 0);
    CHECK(report.log_retired == report.log_count && report.events == report.log_count);
    CHECK(report.confirmation == Status::kOk && report.output_bytes == runs[v].output_bytes);
    nodes[v].receive_data(data, report.output_bytes);
    std::uint32_t bytes = report.output_bytes;
    if (which == 0 && v == 0) {  // a broadcast's root has its result from the beginning
      bytes = runs[v].input_bytes;
      fill_input(v, false, data, bytes);
    }
    digests.results = digest_bytes(digests.results, data, bytes);
    nodes[v].receive_data(data, report.events * kEventBytes);
    digests.events = digest_bytes(digests.events, data, report.events * kEventBytes);
  }
  bare::Text() << collective_name(nodes[0].booted.programs[which].collective) << ": ";
  checks::compare_digests(digests, golden::kDigests[which]);
}

// The server refuses each bad request with a status, and continues.
void check_refusals() {
  agent::RunRequest run{.schedule = 1};
  nodes[1].send_packet(run);
  CHECK_EQ(nodes[1].receive_packet().answer.status, Status::kBadArgument);
  run.schedule = nodes[1].booted.programs[0].schedule_digest;
  run.count = run.output_bytes = kRoom + 8;
  nodes[1].send_packet(run);
  CHECK_EQ(nodes[1].receive_packet().answer.status, Status::kTooLarge);
  run.count = 64;
  run.output_bytes = 63;
  nodes[1].send_packet(run);
  CHECK_EQ(nodes[1].receive_packet().answer.status, Status::kBadArgument);
  nodes[1].send_packet(agent::Configure{});
  CHECK_EQ(nodes[1].receive_packet().answer.status, Status::kBadArgument);
  nodes[1].send_packet(agent::Go{});
  CHECK_EQ(nodes[1].receive_packet().answer.to, agent::Kind::kGo);
  nodes[1].send_packet(agent::Ask{});
  CHECK_EQ(nodes[1].receive_packet().report.output_bytes, 0u);
}

}  // namespace
}  // namespace espalier

int main() {
  using namespace espalier;
  images = kImages;
  signer = golden::key;
  static BareNode made[kNodes] = {BareNode(0), BareNode(1), BareNode(2), BareNode(3)};
  nodes = made;
  for (std::uint32_t v = 0; v < kNodes; ++v) check_hello(v);
  for (std::uint32_t v = 0; v < kNodes; ++v) configure(v);
  for (std::uint32_t which = 0; which < kPrograms; ++which) run_collective(which);
  check_refusals();
  for (std::uint32_t v = 0; v < kNodes; ++v) CHECK_EQ(nodes[v].slots().counter(), 4u);
  return checks::finish();
}
