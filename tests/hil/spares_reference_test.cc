#include "tests/hil/spares_reference.h"

#include <gtest/gtest.h>

namespace espalier {
namespace {

TEST(Agreement, NodesGoOnAlike) {
  Agreement agreement;
  agreement.begin();
  for (const std::uint32_t node : {0u, 1u, 2u}) agreement.take(node, 0, Loss());
  EXPECT_EQ(agreement.complaint(), "");
  agreement.begin();
  for (const std::uint32_t node : {0u, 1u}) agreement.take(node, 2, Loss::node(2));
  EXPECT_EQ(agreement.complaint(), "");
  EXPECT_EQ(agreement.newest().loss, Loss::node(2));
}

TEST(Agreement, ANodeMayHaveReportedBeforeTheLoss) {
  Agreement agreement;
  agreement.begin();
  agreement.take(0, 0, Loss());
  agreement.take(1, 1, Loss::node(3));
  agreement.take(2, 2, Loss::node(3));
  EXPECT_EQ(agreement.complaint(), "");
  EXPECT_EQ(agreement.loss_of(0), Loss());
  EXPECT_EQ(agreement.loss_of(1), Loss::node(3));
  EXPECT_EQ(agreement.newest().generation, 2u);
}

TEST(Agreement, NamesANodeThatDidNotGoOn) {
  Agreement agreement;
  for (int run = 0; run < 2; ++run) {
    agreement.begin();
    agreement.take(0, 1, Loss::node(3));
    agreement.take(1, 1, Loss::node(3));
  }
  agreement.take(2, 0, Loss());
  EXPECT_EQ(
      agreement.complaint(),
      "node 2 goes on without nothing in generation 0, others without node 3 in generation 1");
  agreement.begin();
  agreement.take(0, 2, Loss::node(3));
  agreement.take(1, 2, Loss::node(4));
  EXPECT_EQ(agreement.complaint(),
            "node 1 goes on without node 4 in generation 2, others without node 3 in generation 2");
}

}  // namespace
}  // namespace espalier
