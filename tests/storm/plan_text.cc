// Plans as text, and back.

#include <algorithm>
#include <array>
#include <charconv>
#include <functional>
#include <initializer_list>
#include <string_view>

#include "espalier/internal/hal/serial/serial_link.h"
#include "hal/serial/ethernet.h"
#include "tests/storm/plan.h"

namespace espalier::storm {
namespace {

constexpr const char* kLinksNames[] = {"routed", "multiport", "single-send"};
constexpr const char* kOverNames[] = {"network", "frames", "bytes", "tcp", "mem", "mem+tcp"};

// A number of a fault.
struct Number {
  const char* name;
  std::uint64_t (*get)(const Fault&);
  void (*set)(Fault&, std::uint64_t);
  std::uint64_t most = kNever;
};
#define ESPALIER_NUMBER(name, field, most)                               \
  {                                                                      \
    name, [](const Fault& fault) { return std::uint64_t{fault.field}; }, \
        [](Fault& fault, std::uint64_t value) {                          \
          fault.field = static_cast<decltype(fault.field)>(value);       \
        },                                                               \
        most                                                             \
  }
constexpr std::uint64_t kMaxNs = 1'000'000'000'000;
constexpr Number kNumbers[] = {
    ESPALIER_NUMBER("node", node, 1023),         ESPALIER_NUMBER("peer", peer, 1023),
    ESPALIER_NUMBER("message", message, kMaxNs), ESPALIER_NUMBER("bit", bit, kMaxNs),
    ESPALIER_NUMBER("at", at_ns, kMaxNs),        ESPALIER_NUMBER("operation", operation, kNever),
    ESPALIER_NUMBER("ns", ns, kMaxNs),           ESPALIER_NUMBER("every", every_ns, kMaxNs),
    ESPALIER_NUMBER("times", times, 1000),       ESPALIER_NUMBER("ppm", ppm, 2'000'000),
};
#undef ESPALIER_NUMBER

// The numbers that a fault of each kind has, in the order of the text.
struct Form {
  const char* name;
  const char* numbers;
};
constexpr std::array<Form, kKinds> kForms = {{
    {"drop", "node peer message"},
    {"duplicate", "node peer message"},
    {"reorder", "node peer message ns"},
    {"corrupt", "node peer message bit"},
    {"delay", "node peer message ns"},
    {"kill", "node at operation"},
    {"pause", "node at operation ns"},
    {"hiccup", "node at ns every times"},
    {"deaf", "node at"},
    {"drift", "node ppm"},
    {"tick", "node ns"},
    {"one-way", "node peer at"},
    {"partition", "node at"},
    {"outage", "node peer at ns"},
    {"noise", "ppm"},
    {"restart", "node at ns"},
}};

const Form& form_of(Kind kind) { return kForms[static_cast<std::size_t>(kind)]; }

bool has_number(const Form& form, std::string_view name) {
  for (std::string_view rest = form.numbers; !rest.empty();) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    if (rest.substr(0, end) == name) return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

std::string fault_text(const Fault& fault) {
  const Form& form = form_of(fault.kind);
  std::string text = std::string(form.name) + ":";
  for (const Number& number : kNumbers) {
    if (!has_number(form, number.name)) continue;
    if (number.get(fault) == kNever) continue;
    // An operation takes the place of a time.
    if (number.name == std::string_view("at") && fault.operation != kNever) continue;
    if (text.back() != ':') text += ',';
    text += std::string(number.name) + "=" + std::to_string(number.get(fault));
  }
  return text;
}

bool parse_number(std::string_view text, std::uint64_t most, std::uint64_t& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() && value <= most;
}

Result<Fault> parse_fault(const std::string& text) {
  const std::size_t colon = text.find(':');
  const std::string name = text.substr(0, colon);
  const auto form =
      std::find_if(kForms.begin(), kForms.end(), [&](const Form& f) { return name == f.name; });
  if (form == kForms.end() || colon == std::string::npos) {
    return fail("\"" + text + "\" is not a fault; expected one such as kill:node=3,at=1000");
  }
  Fault fault{.kind = static_cast<Kind>(form - kForms.begin())};
  for (std::string_view rest = std::string_view(text).substr(colon + 1); !rest.empty();) {
    const std::string_view field = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(field.size() + 1, rest.size()));
    const std::string key(field.substr(0, field.find('=')));
    const auto number = std::find_if(std::begin(kNumbers), std::end(kNumbers),
                                     [&](const Number& n) { return key == n.name; });
    if (number == std::end(kNumbers) || !has_number(*form, key)) {
      return fail("\"" + text + "\": " + form->name + " takes " + form->numbers);
    }
    std::uint64_t value = 0;
    if (field.size() <= key.size() + 1 ||
        !parse_number(field.substr(key.size() + 1), number->most, value)) {
      return fail("\"" + text + "\": " + key + " is not a whole number in its range");
    }
    number->set(fault, value);
  }
  return fault;
}

// A field of a plan, except its faults.
struct Field {
  const char* name;
  std::function<std::string(const Plan&)> get;
  std::function<bool(Plan&, const std::string&)> set;
};

template <typename Get>
Field number_field(const char* name, Get get, std::uint64_t most) {
  return {name, [get](const Plan& plan) { return std::to_string(get(const_cast<Plan&>(plan))); },
          [get, most](Plan& plan, const std::string& text) {
            std::uint64_t value = 0;
            if (!parse_number(text, most, value)) return false;
            auto& field = get(plan);
            field = static_cast<std::remove_reference_t<decltype(field)>>(value);
            return true;
          }};
}

template <typename Enum, std::size_t kCount>
Field enum_field(const char* name, Enum& (*get)(Plan&), const char* const (&names)[kCount]) {
  return {name,
          [get, &names](const Plan& plan) {
            return std::string(names[static_cast<std::size_t>(get(const_cast<Plan&>(plan)))]);
          },
          [get, &names](Plan& plan, const std::string& text) {
            for (std::size_t i = 0; i < kCount; ++i) {
              if (text != names[i]) continue;
              get(plan) = static_cast<Enum>(i);
              return true;
            }
            return false;
          }};
}

#define ESPALIER_FIELD(name, field, most) \
  number_field(                           \
      name, [](Plan & p) -> auto& { return p.field; }, most)
const std::vector<Field>& fields() {
  static const std::vector<Field> all = {
      {"topology", [](const Plan& p) { return p.schedule.topology; },
       [](Plan& p, const std::string& text) {
         p.schedule.topology = text;
         return !text.empty();
       }},
      {"collective",
       [](const Plan& p) { return std::string(collective_name(p.schedule.collective)); },
       [](Plan& p, const std::string& text) {
         return parse_collective(text.c_str(), p.schedule.collective);
       }},
      {"algorithm", [](const Plan& p) { return p.schedule.algorithm; },
       [](Plan& p, const std::string& text) {
         p.schedule.algorithm = text;
         return !text.empty();
       }},
      enum_field(
          "links", +[](Plan& p) -> Links& { return p.schedule.links; }, kLinksNames),
      ESPALIER_FIELD("root", schedule.root, 1023),
      ESPALIER_FIELD("window", schedule.window, 64),
      ESPALIER_FIELD("block", schedule.block_bytes, 1 << 20),
      ESPALIER_FIELD("r", schedule.run_length, 64),
      ESPALIER_FIELD("k", schedule.radix, 64),
      ESPALIER_FIELD("S", schedule.send_ticks, 64),
      ESPALIER_FIELD("L", schedule.latency_ticks, 64),
      ESPALIER_FIELD("share", schedule.ratio_numerator, 64),
      ESPALIER_FIELD("of", schedule.ratio_denominator, 64),
      enum_field(
          "over", +[](Plan& p) -> Over& { return p.over; }, kOverNames),
      ESPALIER_FIELD("rounds", rounds, 100),
      ESPALIER_FIELD("N", blocks, 1 << 16),
      ESPALIER_FIELD("missing", missing, 1 << 16),
      {"op", [](const Plan& p) { return std::string(op_name(p.op)); },
       [](Plan& p, const std::string& text) { return parse_op(text.c_str(), p.op); }},
      {"type", [](const Plan& p) { return std::string(type_name(p.type)); },
       [](Plan& p, const std::string& text) { return parse_type(text.c_str(), p.type); }},
      ESPALIER_FIELD("in-place", in_place, 1),
      ESPALIER_FIELD("unequal", unequal, 1),
      ESPALIER_FIELD("machine-window", machine_window, 64),
      ESPALIER_FIELD("endpoint-window", endpoint_window, 64),
      ESPALIER_FIELD("check", check_blocks, 1),
      ESPALIER_FIELD("deadline", deadline_ns, kMaxNs),
      ESPALIER_FIELD("eager", eager_bytes, 1 << 20),
      ESPALIER_FIELD("copies", eager_copies, 1),
      ESPALIER_FIELD("poison", poison, 1),
      ESPALIER_FIELD("jitter", jitter, 1000),
      ESPALIER_FIELD("link-jitter", link_jitter, 1000),
      ESPALIER_FIELD("pace", pace_ns, kMaxNs),
      ESPALIER_FIELD("mtu", mtu, kEthernetMtu),
      ESPALIER_FIELD("line", line_ppm, 1'000'000),
      ESPALIER_FIELD("key", keyed, 1),
      ESPALIER_FIELD("seed", seed, kNever),
  };
  return all;
}
#undef ESPALIER_FIELD

// Whether the plan's carrier uses the field.
bool is_used(std::string_view name, Over over) {
  const auto is_one_of = [name](std::initializer_list<std::string_view> names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (is_one_of({"copies", "poison", "jitter", "link-jitter"})) return over == Over::kNetwork;
  if (is_one_of({"mtu", "line"})) return is_framed(over);
  if (name == "key") return over != Over::kNetwork;
  return name != "eager" || !is_framed(over);
}

}  // namespace

const char* kind_name(Kind kind) { return form_of(kind).name; }

const char* over_name(Over over) { return kOverNames[static_cast<std::size_t>(over)]; }

bool parse_over(const std::string& text, Over& over) {
  for (std::size_t i = 0; i < std::size(kOverNames); ++i) {
    if (text != kOverNames[i]) continue;
    over = static_cast<Over>(i);
    return true;
  }
  return false;
}

bool is_possible(Kind kind, Over over) {
  switch (kind) {
    case Kind::kRestart: return over != Over::kNetwork;
    // The copy of a message may still be outstanding when the next collective prepares its memory,
    // which an endpoint over libfabric refuses.
    case Kind::kDuplicate:
    case Kind::kNoise: return !is_real(over);
    default: return true;
  }
}

std::string plan_text(const Plan& plan) {
  static const Plan usual;
  std::string text;
  for (const Field& field : fields()) {
    const std::string value = field.get(plan);
    if (value == field.get(usual)) continue;
    const bool quoted = value.find_first_of(" \"") != std::string::npos;
    text += (text.empty() ? "" : " ") + std::string(quoted ? "'" : "") + field.name + "=" + value +
            (quoted ? "'" : "");
  }
  for (const Fault& fault : plan.faults) text += " " + fault_text(fault);
  return text;
}

Result<Plan> parse_plan(std::span<const std::string> arguments) {
  Plan plan;
  std::vector<std::string> given;
  for (const std::string& argument : arguments) {
    const std::size_t equals = argument.find('=');
    const std::string name = argument.substr(0, equals);
    const auto field = std::find_if(fields().begin(), fields().end(),
                                    [&](const Field& one) { return name == one.name; });
    if (field == fields().end() || equals == std::string::npos) {
      auto fault = parse_fault(argument);
      if (!fault) return fail(fault.error());
      plan.faults.push_back(*fault);
      continue;
    }
    if (!field->set(plan, argument.substr(equals + 1))) {
      return fail("\"" + argument + "\": not a value of " + name);
    }
    given.push_back(name);
  }
  const std::string over = std::string(" over ") + over_name(plan.over);
  for (const std::string& name : given) {
    if (!is_used(name, plan.over)) return fail("\"" + name + "\" has no effect" + over);
  }
  for (const Fault& fault : plan.faults) {
    if (!is_possible(fault.kind, plan.over)) {
      return fail(std::string("there is no ") + kind_name(fault.kind) + over);
    }
  }
  if (is_framed(plan.over) && plan.endpoint_window > kSerialWindow) {
    return fail("endpoint-window: expected at most " + std::to_string(kSerialWindow) + over);
  }
  if (plan.mtu < serial::kMinCodedMtu) {
    return fail("mtu: expected at least " + std::to_string(serial::kMinCodedMtu));
  }
  return plan;
}

}  // namespace espalier::storm
