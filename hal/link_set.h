#pragma once
// A set of a node's links. Freestanding; one word where a node has at most 64 links.

#include <bit>
#include <cstdint>

#include "firmware/limits.h"

namespace espalier {

class LinkSet {
 public:
  static constexpr std::uint32_t kNone = 0xffffffffu;

  // Links 0 .. count-1.
  [[nodiscard]] static LinkSet first(std::uint32_t count) {
    LinkSet set;
    for (std::uint32_t link = 0; link < count; ++link) set.insert(link);
    return set;
  }

  void insert(std::uint32_t link) { words_[link / 64] |= bit(link); }
  void erase(std::uint32_t link) { words_[link / 64] &= ~bit(link); }
  void clear() { *this = LinkSet(); }
  [[nodiscard]] bool contains(std::uint32_t link) const {
    return (words_[link / 64] & bit(link)) != 0;
  }
  [[nodiscard]] bool empty() const {
    std::uint64_t any = 0;
    for (const std::uint64_t word : words_) any |= word;
    return any == 0;
  }
  // The first link that is `from` or above; kNone if there is none.
  [[nodiscard]] std::uint32_t next(std::uint32_t from) const {
    for (std::uint32_t word = from / 64; word < kWords; ++word) {
      const std::uint64_t rest =
          words_[word] & (word == from / 64 ? ~std::uint64_t{0} << from % 64 : ~std::uint64_t{0});
      if (rest != 0) return 64 * word + static_cast<std::uint32_t>(std::countr_zero(rest));
    }
    return kNone;
  }
  // Calls f(link) for every link that is in the set now, ascending; f may change the set.
  template <typename F>
  void for_each(F f) const {
    const LinkSet now = *this;
    for (std::uint32_t word = 0; word < kWords; ++word) {
      for (std::uint64_t rest = now.words_[word]; rest != 0; rest &= rest - 1) {
        f(64 * word + static_cast<std::uint32_t>(std::countr_zero(rest)));
      }
    }
  }
  [[nodiscard]] LinkSet operator|(const LinkSet& other) const {
    LinkSet both;
    for (std::uint32_t word = 0; word < kWords; ++word) {
      both.words_[word] = words_[word] | other.words_[word];
    }
    return both;
  }

 private:
  static constexpr std::uint32_t kWords = (kMaxLinks + 63) / 64;
  [[nodiscard]] static constexpr std::uint64_t bit(std::uint32_t link) {
    return std::uint64_t{1} << link % 64;
  }
  std::uint64_t words_[kWords] = {};
};

}  // namespace espalier
