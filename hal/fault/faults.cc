#include "hal/fault/faults.h"

#include <charconv>
#include <cstdlib>
#include <map>
#include <sstream>

namespace espalier::fault {
namespace {

constexpr const char* kNames[] = {"drop", "duplicate", "reorder", "corrupt", "delay", "kill"};
constexpr const char* kRandom = "random";

// One statement: its first word and its key=value words.
struct Statement {
  std::string text;
  std::string word;
  std::map<std::string, std::string> values;
};

class Parser {
 public:
  // Reads one statement into `faults`.
  Result<void> statement(const std::string& text, Faults& faults) {
    Statement s;
    if (auto cut = split(text, s); !cut) return cut;
    if (s.word.empty()) return {};  // nothing between two semicolons
    if (s.word == kRandom) return random(s, faults);
    for (std::uint32_t kind = 0; kind <= kMessageKinds; ++kind) {
      if (s.word == kNames[kind]) return one(s, static_cast<Kind>(kind), faults);
    }
    return wrong(s, "unknown fault \"" + s.word +
                        "\"; expected drop, duplicate, reorder, corrupt, delay, kill or random");
  }

 private:
  Result<void> split(const std::string& text, Statement& s) {
    std::istringstream words(text);
    words >> s.word;
    for (std::string word; words >> word;) {
      s.text += (s.text.empty() ? s.word + " " : " ") + word;
      const std::size_t equals = word.find('=');
      if (equals == std::string::npos || equals == 0) {
        return wrong(s, "\"" + word + "\" is not key=value");
      }
      const std::string key = word.substr(0, equals);
      if (!s.values.emplace(key, word.substr(equals + 1)).second) {
        return wrong(s, key + " is given twice");
      }
    }
    if (s.text.empty()) s.text = s.word;
    return {};
  }

  Result<void> one(Statement& s, Kind kind, Faults& faults) {
    Fault fault{.kind = kind};
    std::uint64_t link = 0;
    Result<void> good;
    if (kind == Kind::kKill) {
      good = need(s, "after", fault.after);
    } else {
      good = need(s, "link", link);
      if (good) good = need(s, "message", fault.message);
      if (good && link > 0xffff) return wrong(s, "there is no link " + std::to_string(link));
      fault.link = static_cast<std::uint32_t>(link);
    }
    if (good && kind == Kind::kDelay) good = need(s, "ns", fault.ns);
    if (good && kind == Kind::kReorder) good = number(s, "ns", fault.ns);
    if (good && kind == Kind::kCorrupt) good = number(s, "bit", fault.bit);
    if (good) good = all_used(s);
    if (!good) return good;
    faults.script.push_back(fault);
    return {};
  }

  Result<void> random(Statement& s, Faults& faults) {
    if (auto read = need(s, "seed", faults.seed); !read) return read;
    if (auto read = number(s, "ns", faults.ns); !read) return read;
    double sum = 0;
    for (std::uint32_t kind = 0; kind < kMessageKinds; ++kind) {
      if (auto read = chance(s, kNames[kind], faults.chance[kind]); !read) return read;
      sum += faults.chance[kind];
    }
    if (sum > 1) return wrong(s, "the probabilities add up to more than 1");
    return all_used(s);
  }

  Result<void> need(Statement& s, const char* key, std::uint64_t& value) {
    if (s.values.count(key) == 0) return wrong(s, std::string("needs ") + key + "=NUMBER");
    return number(s, key, value);
  }

  // Reads and removes the value of `key`, if there is one.
  Result<void> number(Statement& s, const char* key, std::uint64_t& value) {
    const auto found = s.values.find(key);
    if (found == s.values.end()) return {};
    const std::string text = found->second;
    s.values.erase(found);
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (code == std::errc() && end == text.data() + text.size()) return {};
    return wrong(s,
                 std::string(key) + "=" + text + " is not a number; expected a whole number >= 0");
  }

  Result<void> chance(Statement& s, const char* key, double& value) {
    const auto found = s.values.find(key);
    if (found == s.values.end()) return {};
    const std::string text = found->second;
    s.values.erase(found);
    char* end = nullptr;
    value = std::strtod(text.c_str(), &end);
    if (!text.empty() && *end == '\0' && value >= 0 && value <= 1) return {};
    return wrong(s, std::string(key) + "=" + text + " is not a probability; expected 0 to 1");
  }

  Result<void> all_used(const Statement& s) {
    if (s.values.empty()) return {};
    return wrong(s, s.word + " takes no " + s.values.begin()->first + "=");
  }

  Result<void> wrong(const Statement& s, const std::string& what) {
    return fail("fault \"" + (s.text.empty() ? s.word : s.text) + "\": " + what);
  }
};

}  // namespace

const char* kind_name(Kind kind) { return kNames[static_cast<std::uint32_t>(kind)]; }

Result<Faults> parse_faults(const std::string& text) {
  Faults parsed;
  std::istringstream statements(text);
  for (std::string statement; std::getline(statements, statement, ';');) {
    if (auto read = Parser().statement(statement, parsed); !read) return fail(read.error());
  }
  return parsed;
}

}  // namespace espalier::fault
