// Which program serves a call: one table, and every kind of node gives its answers on every rank.

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "base/testing/results.h"
#include "collectives/machine/affine.h"
#include "communicator/image_programs.h"
#include "communicator/schedules.h"
#include "espalier/espalier_node.h"
#include "firmware/image/testing/sample_image.h"
#include "firmware/node/boot_image.h"
#include "firmware/node/node_server.h"
#include "tests/bare/bare_nodes.h"
#include "tests/directory_test.h"
#include "tests/nodes/images.h"

namespace espalier::nodes {
namespace {

struct Row {
  const char* name;
  Collective collective;
  std::uint32_t root;
  std::uint32_t bytes;
  bool own;  // an operator of the caller's, which does not commute
  Status status;
  const char* algorithm;  // of the program that serves it
};

constexpr std::uint32_t kBytes = 1000;  // of the longest message
const Row kRows[] = {
    {"a selection, no bytes", Collective::kBroadcast, 0, 0, false, Status::kOk, "binomial"},
    {"a selection, first row", Collective::kBroadcast, 0, 992, false, Status::kOk, "binomial"},
    {"a selection, second row", Collective::kBroadcast, 0, kBytes, false, Status::kOk, "chain"},
    {"another root", Collective::kBroadcast, 1, 8, false, Status::kBadArgument, ""},
    {"rows that commute", Collective::kReduce, 0, 8, false, Status::kOk, "circulant"},
    {"rows that commute, second", Collective::kReduce, 0, kBytes, false, Status::kOk, "chain"},
    {"no row in order", Collective::kReduce, 0, 8, true, Status::kBadOperator, ""},
    {"no row in order, second", Collective::kReduce, 0, kBytes, true, Status::kBadOperator, ""},
    {"two programs, the first", Collective::kReduce, 1, 8, false, Status::kOk, "circulant"},
    {"two programs, in order", Collective::kReduce, 1, 8, true, Status::kOk, "binomial"},
    {"one program", Collective::kReduce, 2, 8, false, Status::kOk, "circulant"},
    {"none in order", Collective::kReduce, 2, 8, true, Status::kBadOperator, ""},
    {"no program", Collective::kReduce, 3, 8, true, Status::kBadArgument, ""},
    {"one of all ranks", Collective::kAllreduce, 0, 8, false, Status::kOk, "two-tree"},
    {"one of all ranks, in order", Collective::kAllreduce, 0, 8, true, Status::kOk, "two-tree"},
    {"a root that it has not", Collective::kAllreduce, 1, 8, false, Status::kBadArgument, ""},
    {"no such collective", Collective::kAllgather, 0, 8, false, Status::kBadArgument, ""},
    {"a barrier", Collective::kBarrier, 0, 0, false, Status::kOk, "dissemination"},
};

Operator operator_of(const Row& row) {
  if (row.own) return affine();
  if (combines_operands(row.collective)) return {.op = Op::kSum, .type = Type::kF64};
  return {};
}

std::uint64_t count_of(const Row& row) { return row.bytes / element_bytes(operator_of(row)); }

// The images of all nodes, signed, in files and in memory.
class Calls : public DirectoryTest {
 protected:
  void SetUp() override {
    DirectoryTest::SetUp();
    for (std::uint32_t node = 0; node < kRanks; ++node) {
      images_.push_back(sample_image(content_of(node, board_), &key_));
      std::ofstream(path(node), std::ios::binary)
          .write(reinterpret_cast<const char*>(images_[node].data()),
                 static_cast<std::streamsize>(images_[node].size()));
      node::BootOptions options;
      options.image = path(node);
      options.takes_unsigned = true;
      const auto booted = node::boot_image(options, node, booted_[node], programs_[node]);
      EXPECT_TRUE(booted) << booted.error().message;
    }
  }
  [[nodiscard]] std::string path(std::uint32_t node) const {
    return (directory_ / ("node-" + std::to_string(node) + ".img")).string();
  }

  // The program that must serve the row; null: none.
  [[nodiscard]] const Program* expected(const Row& row, std::uint32_t node) const {
    const node::Programs& all = programs_[node];
    for (std::uint32_t i = 0; i < all.count; ++i) {
      const Program& program = all.programs[i];
      if (program.collective == row.collective && program.root == row.root &&
          std::string(program.algorithm) == row.algorithm) {
        return &program;
      }
    }
    return nullptr;
  }

  // The digest by which a launcher names the row's schedules.
  [[nodiscard]] std::uint64_t schedule_of(const Row& row) const {
    const node::Programs& all = programs_[0];
    for (std::uint32_t i = 0; i < all.selections_count; ++i) {
      const SelectionTable& table = all.selections[i].table;
      if (Collective(table.collective) == row.collective && table.root == row.root) {
        return all.selections[i].digest;
      }
    }
    if (const Program* program = expected(row, 0)) return program->schedule_digest;
    for (std::uint32_t i = 0; i < all.count; ++i) {
      const Program& program = all.programs[i];
      if (program.collective == row.collective && program.root == row.root) {
        return program.schedule_digest;
      }
    }
    return 12345;
  }

  const SampleKey key_{1};
  const std::string board_ = node::BootOptions().board;
  std::vector<std::vector<std::uint8_t>> images_;
  node::BootedImage booted_[kRanks];
  node::Programs programs_[kRanks];
};

TEST_F(Calls, TheImagesHaveWhatTheTableNeeds) {
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    ASSERT_EQ(programs_[rank].count, kSchedules.size());
    ASSERT_EQ(programs_[rank].selections_count, kSelections.size());
    for (std::uint32_t i = 0; i < programs_[rank].count; ++i) {
      EXPECT_EQ(programs_[rank].programs[i].needs_commutative,
                std::string(kSchedules[i].algorithm) == "circulant")
          << i;
    }
  }
  for (const Row& row : kRows) {
    EXPECT_EQ(expected(row, 0) != nullptr, row.status == Status::kOk) << row.name;
  }
}

TEST_F(Calls, FindProgram) {
  for (const Row& row : kRows) {
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      CallByRoot call;
      call.commutes = commutes(operator_of(row));
      call.counts = count_of(row);
      call.element_bytes = element_bytes(operator_of(row));
      call.collective = static_cast<std::uint32_t>(row.collective);
      call.root = row.root;
      const DecodedProgram* found = nullptr;
      ASSERT_EQ(find_program(programs_[rank], call, found), row.status) << row.name;
      if (row.status != Status::kOk) continue;
      EXPECT_EQ(found, expected(row, rank)) << row.name;
    }
  }
}

TEST_F(Calls, Communicator) {
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    NodeImage from{.file = path(rank), .takes_unsigned = true};
    const std::shared_ptr<const communicator::ImagePrograms> image =
        or_throw(communicator::ImagePrograms::load(from, rank, kRanks));
    const auto schedules = or_throw(communicator::Schedules::make(rank, kRanks, {}, {}, image));
    for (const Row& row : kRows) {
      const communicator::ScheduleRequest request = {.collective = row.collective,
                                                     .root = row.root,
                                                     .bytes = row.bytes,
                                                     .commutes = commutes(operator_of(row))};
      const communicator::PlannedProgram* found = nullptr;
      ASSERT_EQ(image->find(request, found), row.status) << row.name;
      if (row.status == Status::kOk) {
        const auto obtained = schedules->obtain(request);
        ASSERT_TRUE(obtained) << row.name << ": " << obtained.error().message;
        EXPECT_EQ(*obtained, found) << row.name;
        EXPECT_EQ(found->program.schedule_digest, expected(row, rank)->schedule_digest);
      } else if (row.status == Status::kBadOperator) {
        const auto refused = schedules->obtain(request);
        ASSERT_FALSE(refused) << row.name;
        EXPECT_NE(refused.error().message.find("keeps the order of ranks"), std::string::npos);
      }
    }
  }
}

// Links to all other ranks, over which nothing comes and whose messages do not end.
class SilentEndpoint final : public Endpoint {
 public:
  explicit SilentEndpoint(std::uint32_t node) : node_(node) {}
  [[nodiscard]] std::uint32_t node() const override { return node_; }
  [[nodiscard]] std::uint32_t links() const override { return kRanks - 1; }
  [[nodiscard]] std::uint32_t peer(std::uint32_t link) const override {
    return link < node_ ? link : link + 1;
  }
  [[nodiscard]] std::uint32_t window() const override { return kMaxWindow; }
  [[nodiscard]] std::uint64_t eager_bytes() const override { return 0; }
  [[nodiscard]] Status prepare(const Region*, std::uint32_t) override { return Status::kOk; }
  [[nodiscard]] Status post_receive(std::uint32_t, const ReceivePost&) override {
    return Status::kOk;
  }
  [[nodiscard]] Status post_send(std::uint32_t, const SendPost&) override { return Status::kOk; }
  [[nodiscard]] Status post_control(std::uint32_t, const Control&) override { return Status::kOk; }
  [[nodiscard]] bool poll(Completion&) override { return false; }
  void release() override {}
  [[nodiscard]] std::uint64_t now() override { return ++now_; }
  void wait(std::uint64_t) override {}

 private:
  std::uint32_t node_;
  std::uint64_t now_ = 0;
};

// A Linux node's answer to a request: kOk if it started.
Status start_on_linux(const node::Programs& programs, std::uint32_t rank,
                      const control::RunRequest& request) {
  int ends[2];
  EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
  SilentEndpoint endpoint(rank);
  node::NodeServer server(endpoint, programs, ends[1]);
  EXPECT_EQ(server.init({}, false), Status::kOk);
  control::Memory memory;
  memory.input_bytes = memory.output_bytes = kBytes;
  const int file = memfd_create("calls", 0);
  EXPECT_EQ(ftruncate(file, static_cast<off_t>(control::output_offset(kBytes) + 4096)), 0);
  EXPECT_TRUE(control::send(ends[0], memory, file));
  EXPECT_TRUE(control::send(ends[0], request));
  control::Any packet;
  int descriptor = -1;
  for (int steps = 0; steps < 4; ++steps) server.step(true);
  EXPECT_EQ(control::receive(ends[0], packet, descriptor, 0), control::Received::kPacket);
  EXPECT_EQ(packet.packet, control::Packet::kMapped);
  Status status = Status::kOk;
  if (control::receive(ends[0], packet, descriptor, 0) == control::Received::kPacket) {
    EXPECT_EQ(packet.packet, control::Packet::kReport);
    status = packet.report.status;
  } else {
    EXPECT_TRUE(server.running());
  }
  for (const int open : {file, ends[0], ends[1]}) close(open);
  return status;
}

TEST_F(Calls, LinuxNode) {
  for (const Row& row : kRows) {
    const Operator op = operator_of(row);
    for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
      control::RunRequest request{
          .schedule = schedule_of(row), .op = op.op, .type = op.type, .count = count_of(row)};
      const Status status = start_on_linux(programs_[rank], rank, request);
      EXPECT_EQ(status, row.status) << row.name << ", rank " << rank;
    }
  }
}

TEST_F(Calls, NodeInC) {
  static std::uint64_t memory[1 << 17];
  alignas(16) static std::uint8_t send[kBytes], receive[kBytes], scratch[1 << 16];
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) {
    espalier_node_config config = ESPALIER_NODE_CONFIG;
    config.image = images_[rank].data();
    config.image_bytes = images_[rank].size();
    config.board = board_.c_str();
    config.send = [](void*, std::uint32_t, const std::uint8_t*, std::uint32_t) { return 0; };
    config.receive = [](void*, std::uint32_t, std::uint8_t*) { return std::uint32_t{0}; };
    config.now = [](void*) { return std::uint64_t{1}; };
    config.session = 1;
    for (const Row& row : kRows) {
      espalier_node* made = nullptr;
      ASSERT_EQ(espalier_node_init(&config, memory, sizeof memory, &made), ESPALIER_OK);
      const Operator op = operator_of(row);
      espalier_node_call call = ESPALIER_NODE_CALL;
      call.collective =
          static_cast<espalier_collective>(static_cast<std::uint32_t>(row.collective));
      call.root = row.root;
      call.type = static_cast<espalier_type>(op.type);
      call.op = static_cast<espalier_op>(op.op);
      call.element_bytes = op.element_bytes;
      call.combine = op.custom;
      call.send = send;
      call.receive = receive;
      call.count = count_of(row);
      call.scratch = scratch;
      call.scratch_bytes = sizeof scratch;
      if (const Program* const program = expected(row, rank)) {
        Layout layout;
        ASSERT_EQ(make_layout(*program, call.count, element_bytes(op), layout), Status::kOk);
        EXPECT_EQ(espalier_node_scratch_bytes(made, &call), scratch_needed(*program, layout))
            << row.name << ", rank " << rank;
      }
      EXPECT_EQ(espalier_node_start(made, &call), static_cast<int>(row.status))
          << row.name << ", rank " << rank;
    }
  }
}

// A board has no operators of callers.
TEST_F(Calls, BareNode) {
  using namespace bare_nodes;
  ImageBytes all[kRanks];
  std::vector<std::uint8_t> images[kRanks];
  for (std::uint32_t v = 0; v < kRanks; ++v) {
    images[v] = sample_image(content_of(v, "mps2-an385"), &key_);
    all[v] = {images[v].data(), static_cast<std::uint32_t>(images[v].size())};
  }
  bare_nodes::images = all;
  signer = key_.public_key;
  static bare_nodes::BareNode made[kRanks] = {bare_nodes::BareNode(0), bare_nodes::BareNode(1),
                                              bare_nodes::BareNode(2), bare_nodes::BareNode(3)};
  bare_nodes::nodes = made;
  static std::uint8_t data[kRoom];
  for (std::uint32_t v = 0; v < kRanks; ++v) {
    const agent::Hello hello = made[v].receive_packet().hello;
    ASSERT_EQ(hello.boot, Status::kOk);
    made[v].receive_data(data, hello.links * std::uint32_t{sizeof(agent::LinkEntry)} +
                                   hello.programs * std::uint32_t{sizeof(agent::ProgramEntry)});
    configure(v);
  }
  std::uint32_t number = 0;
  for (const Row& row : kRows) {
    const bool refuses_own = row.own && row.status == Status::kOk;
    const Status expected_status = refuses_own ? Status::kBadOperator : row.status;
    ++number;
    for (std::uint32_t v = 0; v < kRanks; ++v) {
      agent::RunRequest run{.number = number,
                            .schedule = schedule_of(row),
                            .count = count_of(row),
                            .op = operator_of(row).op,
                            .type = row.own ? Type::kF64 : operator_of(row).type};
      run.input_bytes = run.output_bytes = kBytes;
      made[v].send_packet(run);
      const Status status = made[v].receive_packet().answer.status;
      EXPECT_EQ(status, expected_status) << row.name << ", rank " << v;
      if (status == Status::kOk) made[v].send_data(data, run.input_bytes);
    }
    if (expected_status != Status::kOk) continue;
    for (std::uint32_t v = 0; v < kRanks; ++v) {
      agent::Go go{.number = number};
      made[v].send_packet(go);
    }
    for (std::uint32_t v = 0; v < kRanks; ++v) {
      const agent::Report report = made[v].receive_packet().report;
      EXPECT_EQ(report.status, Status::kOk) << row.name;
      made[v].receive_data(data, report.output_bytes);
      made[v].receive_data(data, report.events * kEventBytes);
    }
  }
  EXPECT_EQ(checks::failed, 0u);
}

}  // namespace
}  // namespace espalier::nodes
