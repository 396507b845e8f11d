#include "base/one_line.h"

#include <gtest/gtest.h>

namespace espalier {
namespace {

TEST(OneLine, LeavesTextAlone) {
  EXPECT_EQ(one_line(""), "");
  EXPECT_EQ(one_line(" ~ a\\b"), " ~ a\\b");
  EXPECT_EQ(one_line("gr\xc3\xb6\xc3\x9f\x65 \xe2\x82\xac \xf0\x9f\x98\x80"),
            "gr\xc3\xb6\xc3\x9f\x65 \xe2\x82\xac \xf0\x9f\x98\x80");
}

TEST(OneLine, EscapesWhatControlsATerminal) {
  EXPECT_EQ(one_line("a\x1b[2Jb"), "a\\x1b[2Jb");
  EXPECT_EQ(one_line("a\nb\r\tc\x7f"), "a\\x0ab\\x0d\\x09c\\x7f");
  EXPECT_EQ(one_line(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(one_line("\xc2\x9b"
                     "31m"),
            "\\xc2\\x9b31m")
      << "CSI in one character";
  EXPECT_EQ(one_line("\xe2\x80\xae"
                     "txt"),
            "\\xe2\\x80\\xaetxt")
      << "right to left";
  EXPECT_EQ(one_line("\xe2\x80\xa8"), "\\xe2\\x80\\xa8") << "line separator";
}

TEST(OneLine, EscapesWhatIsNotUtf8) {
  EXPECT_EQ(one_line("\x9b"
                     "31m"),
            "\\x9b31m")
      << "CSI in ISO 8859";
  EXPECT_EQ(one_line("\xc3"), "\\xc3") << "cut short";
  EXPECT_EQ(one_line("\xc3"
                     "a\x80"),
            "\\xc3a\\x80");
  EXPECT_EQ(one_line("\xc0\x9b"), "\\xc0\\x9b") << "longer than necessary";
  EXPECT_EQ(one_line("\xe0\x82\x9b"), "\\xe0\\x82\\x9b") << "longer than necessary";
  EXPECT_EQ(one_line("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "surrogate";
  EXPECT_EQ(one_line("\xf4\x90\x80\x80\xff"), "\\xf4\\x90\\x80\\x80\\xff");
}

}  // namespace
}  // namespace espalier
