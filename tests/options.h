#pragma once
// The options of a test's program, "--NAME VALUE" each.

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <map>
#include <string>
#include <vector>

namespace espalier::testing {

// A bad option ends the program with status 2.
class Options {
 public:
  // known: the names. If an option is given twice, its last value counts.
  Options(std::string program, const std::vector<std::string>& words,
          const std::vector<std::string>& known)
      : program_(std::move(program)) {
    for (std::size_t i = 0; i < words.size(); i += 2) {
      if (std::find(known.begin(), known.end(), words[i]) == known.end()) {
        std::string names;
        for (const std::string& name : known) names += " " + name;
        refuse(words[i] + " is unknown; expected" + names);
      }
      if (i + 1 == words.size()) refuse(words[i] + " needs a value");
      values_[words[i]] = words[i + 1];
    }
  }
  [[noreturn]] void refuse(const std::string& text) const {
    std::fprintf(stderr, "%s: %s\n", program_.c_str(), text.c_str());
    std::exit(2);
  }
  [[nodiscard]] bool has(const std::string& name) const { return values_.count(name) != 0; }
  [[nodiscard]] std::string text(const std::string& name) const {
    return has(name) ? values_.at(name) : "";
  }
  [[nodiscard]] std::string one_of(const std::string& name,
                                   const std::vector<std::string>& all) const {
    if (has(name) && std::find(all.begin(), all.end(), text(name)) == all.end()) {
      std::string names;
      for (const std::string& each : all) names += " " + each;
      refuse(name + " is '" + text(name) + "'; expected one of" + names);
    }
    return text(name);
  }
  // Sets `number` if the option is given.
  template <typename Number>
  void read(const std::string& name, Number& number, std::uint64_t least,
            std::uint64_t most = std::numeric_limits<Number>::max()) const {
    if (has(name)) number = static_cast<Number>(number_of(name, text(name), least, most));
  }
  [[nodiscard]] std::uint64_t number_of(const std::string& name, const std::string& text,
                                        std::uint64_t least, std::uint64_t most) const {
    std::uint64_t value = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    if (error == std::errc() && stop == end && value >= least && value <= most) return value;
    refuse(name + " is '" + text + "'; expected a number from " + std::to_string(least) + " to " +
           std::to_string(most));
  }

 private:
  std::string program_;
  std::map<std::string, std::string> values_;
};

}  // namespace espalier::testing
