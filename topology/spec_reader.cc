#include "topology/spec_reader.h"

#include <limits>

namespace espalier::topology {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

std::uint32_t SpecReader::number(std::string_view what) {
  if (error_) return 0;
  const std::size_t begin = at_;
  std::uint64_t value = 0;
  while (at_ < text_.size() && is_digit(text_[at_]) && value <= 0xffffffffu) {
    value = value * 10 + static_cast<std::uint64_t>(text_[at_++] - '0');
  }
  const std::string name(what);
  if (at_ == begin) {
    fail(name + " is missing");
  } else if (value == 0) {
    fail(name + " is 0");
  } else if (text_[begin] == '0') {
    fail(name + " has a leading 0");
  } else if (value > std::numeric_limits<std::int32_t>::max()) {
    fail(name + " is too large");
  }
  return error_ ? 0 : static_cast<std::uint32_t>(value);
}

bool SpecReader::take(std::string_view text) {
  if (error_ || text_.substr(at_, text.size()) != text) return false;
  at_ += text.size();
  return true;
}

void SpecReader::literal(std::string_view text) {
  if (!take(text)) fail("'" + std::string(text) + "' is missing");
}

void SpecReader::end() {
  if (at_ < text_.size()) fail("unexpected '" + std::string(text_.substr(at_)) + "'");
}

void SpecReader::limit_nodes(std::uint64_t nodes) {
  if (nodes > kMaxTopologyNodes) {
    fail(std::to_string(nodes) + " nodes are more than " + std::to_string(kMaxTopologyNodes));
  }
}

void SpecReader::fail(std::string_view what) {
  if (error_) return;
  error_ = Error{"topology '" + std::string(family_) + std::string(text_) +
                 "': " + std::string(what) + " (at character " +
                 std::to_string(family_.size() + at_ + 1) + "); expected " + std::string(shape_)};
}

Result<void> SpecReader::result() const {
  if (error_) return espalier::fail(*error_);
  return {};
}

}  // namespace espalier::topology
