#pragma once
// A set of a node's links. Freestanding. It takes one word if a node has at most 64 links, and a
// 32-bit word if it has at most 32.

#include <bit>
#include <cstdint>
#include <type_traits>

#include "espalier/internal/base/assert.h"
#include "espalier/internal/base/limits.h"

namespace espalier {

inline namespace ESPALIER_LINKS_BUILD {
// A set of links, which are numbers below kMaxLinks; empty at first. Functions that take a `link`
// require link < kMaxLinks.
class LinkSet {
 public:
  static constexpr std::uint32_t kNone = 0xffffffffu;  // not a link

  // Returns the set of links 0 .. count-1. Requires count <= kMaxLinks.
  [[nodiscard]] static LinkSet first(std::uint32_t count) {
    ESPALIER_ASSERT(count <= kMaxLinks);
    LinkSet set;
    for (std::uint32_t link = 0; link < count; ++link) set.insert(link);
    return set;
  }

  // insert() adds a link, which may be in the set already. erase() removes one, which need not be
  // in it. clear() removes all.
  void insert(std::uint32_t link) {
    ESPALIER_ASSERT(link < kMaxLinks);
    words_[link / kBits] |= bit(link);
  }
  void erase(std::uint32_t link) {
    ESPALIER_ASSERT(link < kMaxLinks);
    words_[link / kBits] &= ~bit(link);
  }
  void clear() { *this = LinkSet(); }
  // Whether `link` is in the set.
  [[nodiscard]] bool contains(std::uint32_t link) const {
    ESPALIER_ASSERT(link < kMaxLinks);
    return (words_[link / kBits] & bit(link)) != 0;
  }
  // Whether no link is in the set.
  [[nodiscard]] bool empty() const {
    Word any = 0;
    for (const Word word : words_) any |= word;
    return any == 0;
  }
  // Returns the lowest link >= `from` in the set, or kNone.
  [[nodiscard]] std::uint32_t next(std::uint32_t from) const {
    for (std::uint32_t word = from / kBits; word < kWords; ++word) {
      const Word rest = words_[word] & (word == from / kBits ? ~Word{0} << from % kBits : ~Word{0});
      if (rest != 0) return kBits * word + static_cast<std::uint32_t>(std::countr_zero(rest));
    }
    return kNone;
  }
  // Calls f(link) for every link now in the set, in ascending order; f may change the set.
  template <typename F>
  void for_each(F f) const {
    const LinkSet now = *this;
    for (std::uint32_t word = 0; word < kWords; ++word) {
      for (Word rest = now.words_[word]; rest != 0; rest &= rest - 1) {
        f(kBits * word + static_cast<std::uint32_t>(std::countr_zero(rest)));
      }
    }
  }
  // Returns the union of both sets.
  [[nodiscard]] LinkSet operator|(const LinkSet& other) const {
    LinkSet both;
    for (std::uint32_t word = 0; word < kWords; ++word) {
      both.words_[word] = words_[word] | other.words_[word];
    }
    return both;
  }

 private:
  using Word = std::conditional_t<kMaxLinks <= 32, std::uint32_t, std::uint64_t>;
  static constexpr std::uint32_t kBits = 8 * sizeof(Word);
  static constexpr std::uint32_t kWords = (kMaxLinks + kBits - 1) / kBits;
  [[nodiscard]] static constexpr Word bit(std::uint32_t link) { return Word{1} << link % kBits; }
  Word words_[kWords] = {};
};
}  // namespace ESPALIER_LINKS_BUILD

}  // namespace espalier
