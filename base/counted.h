#pragma once
// Nouns in messages: "1 rank", "2 ranks", "an allreduce", "a, b or c". Host only.

#include <concepts>
#include <string>
#include <string_view>
#include <vector>

namespace espalier {

// Returns the number with its noun: "3 links", "1 link", "2N+3 processes". `one`: the noun for one
// of them, whose plural ends in -s, -sses, -ries or -ties.
[[nodiscard]] inline std::string counted(const std::string& number, std::string_view one) {
  std::string text = number + " " + std::string(one);
  if (number == "1") return text;
  if (one.ends_with("ss")) return text + "es";
  if (one.ends_with("ry") || one.ends_with("ty")) return text.substr(0, text.size() - 1) + "ies";
  return text + "s";
}

[[nodiscard]] std::string counted(std::integral auto number, std::string_view one) {
  return counted(std::to_string(number), one);
}

// Returns the noun with its article: "an allreduce", "a broadcast".
[[nodiscard]] inline std::string with_article(std::string_view noun) {
  const bool is_vowel =
      !noun.empty() && std::string_view("aeioAEIO").find(noun.front()) != std::string_view::npos;
  return (is_vowel ? "an " : "a ") + std::string(noun);
}

// Returns the names as alternatives: "a, b or c".
[[nodiscard]] inline std::string either(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " or " : ", ";
    text += names[i];
  }
  return text;
}

}  // namespace espalier
