#include "tools/launch/output.h"

#include <gtest/gtest.h>

namespace espalier::launch {
namespace {

TEST(LinePrinter, PutsTheRankInFrontOfEachLine) {
  LinePrinter printer;
  EXPECT_EQ(printer.lines(3, 1, "a\n\nb\n"), "[3] a\n[3] \n[3] b\n");
  EXPECT_EQ(printer.lines(LinePrinter::kLauncher, 2, "espalier: x\n"), "espalier: x\n");
}

TEST(LinePrinter, ALineGoesOnWhereItStopped) {
  LinePrinter printer;
  EXPECT_EQ(printer.lines(0, 1, "value? "), "[0] value? ");
  EXPECT_EQ(printer.lines(0, 1, "42\n7"), "42\n[0] 7");
  EXPECT_EQ(printer.lines(0, 1, "\n"), "\n");
}

TEST(LinePrinter, AnotherSourceBeginsALine) {
  LinePrinter printer;
  EXPECT_EQ(printer.lines(0, 1, "value? "), "[0] value? ");
  EXPECT_EQ(printer.lines(1, 1, "b\n"), "\n[1] b\n");
  EXPECT_EQ(printer.lines(0, 1, "42"), "[0] 42");
  EXPECT_EQ(printer.lines(0, 2, "e"), "\n[0] e");
  EXPECT_EQ(printer.lines(LinePrinter::kLauncher, 2, "x\n"), "\nx\n");
}

TEST(LinePrinter, ACarriageReturnKeepsTheRank) {
  LinePrinter printer;
  EXPECT_EQ(printer.lines(0, 1, "\r10%"), "[0] \r[0] 10%");
  EXPECT_EQ(printer.lines(0, 1, "\r20%\r"), "\r[0] 20%\r");
  EXPECT_EQ(printer.lines(0, 1, "30%\r\nx\r\n"), "[0] 30%\r\n[0] x\r\n");
}

}  // namespace
}  // namespace espalier::launch
