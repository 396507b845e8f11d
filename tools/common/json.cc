#include "tools/common/json.h"

#include <algorithm>
#include <nlohmann/json.hpp>

namespace espalier::tools {

using Library = nlohmann::ordered_json;

// Converts between values here and values of the library.
struct JsonConversion {
  static Library to_library(const Json& json) {
    if (const auto* items = std::get_if<std::vector<Json>>(&json.value_)) {
      Library array = Library::array();
      for (const Json& item : *items) array.push_back(to_library(item));
      return array;
    }
    if (const auto* members = std::get_if<Json::Object>(&json.value_)) {
      Library object = Library::object();
      // The library would look each name up in a list.
      auto& list = object.get_ref<Library::object_t&>();
      for (const auto& [name, value] : *members) {
        static_cast<std::vector<Library::object_t::value_type>&>(list).emplace_back(
            name, to_library(value));
      }
      return object;
    }
    if (const auto* truth = std::get_if<bool>(&json.value_)) return *truth;
    if (const auto* number = std::get_if<std::int64_t>(&json.value_)) return *number;
    if (const auto* number = std::get_if<std::uint64_t>(&json.value_)) return *number;
    if (const auto* number = std::get_if<double>(&json.value_)) return *number;
    if (const auto* text = std::get_if<std::string>(&json.value_)) return *text;
    return nullptr;
  }

  static Json from_library(const Library& value) {
    Json json;
    if (value.is_array()) {
      std::vector<Json> items;
      for (const Library& item : value) items.push_back(from_library(item));
      json.value_ = std::move(items);
    } else if (value.is_object()) {
      Json::Object members;
      for (const auto& [name, item] : value.items()) members.emplace_back(name, from_library(item));
      json.value_ = std::move(members);
    } else if (value.is_boolean()) {
      json = value.get<bool>();
    } else if (value.is_number_unsigned()) {
      json = value.get<std::uint64_t>();
    } else if (value.is_number_integer()) {
      json = value.get<std::int64_t>();
    } else if (value.is_number()) {
      json = value.get<double>();
    } else if (value.is_string()) {
      json = value.get<std::string>();
    }
    return json;
  }

  static bool is_member(const Json& json) {
    const auto* items = json.items();
    return items != nullptr && items->size() == 2 &&
           std::holds_alternative<std::string>(items->front().value_);
  }

  static Json::Member member(const Json& json) {
    return {std::get<std::string>(json.items()->front().value_), json.items()->back()};
  }
};

Json::Json(std::initializer_list<Json> items) {
  if (std::all_of(items.begin(), items.end(), JsonConversion::is_member)) {
    Object members;
    for (const Json& item : items) members.push_back(JsonConversion::member(item));
    value_ = std::move(members);
  } else {
    value_ = std::vector<Json>(items);
  }
}

Json Json::object() {
  Json json;
  json.value_ = Object();
  return json;
}

std::optional<Json> Json::parse(const std::string& text) {
  // Values are converted, written and freed by functions that call themselves.
  constexpr int kMaxDepth = 100;
  bool is_too_deep = false;
  const auto keeps = [&is_too_deep](int depth, Library::parse_event_t, const Library&) {
    is_too_deep = is_too_deep || depth > kMaxDepth;
    return !is_too_deep;
  };
  const Library value = Library::parse(text, keeps, false);
  if (is_too_deep || value.is_discarded()) return std::nullopt;
  return JsonConversion::from_library(value);
}

Json& Json::operator[](std::string_view name) {
  if (std::holds_alternative<std::nullptr_t>(value_)) value_ = Object();
  auto& members = std::get<Object>(value_);
  for (auto& [known, value] : members) {
    if (known == name) return value;
  }
  return members.emplace_back(std::string(name), Json()).second;
}

void Json::add(std::string name, Json value) {
  std::get<Object>(value_).emplace_back(std::move(name), std::move(value));
}

void Json::push_back(Json item) { std::get<std::vector<Json>>(value_).push_back(std::move(item)); }

Json& Json::back() { return std::get<std::vector<Json>>(value_).back(); }

bool Json::empty() const {
  if (is_object()) return std::get<Object>(value_).empty();
  return items() == nullptr || items()->empty();
}

const Json* Json::find(std::string_view name) const {
  const auto* members = std::get_if<Object>(&value_);
  if (members == nullptr) return nullptr;
  const auto found = std::find_if(members->begin(), members->end(),
                                  [name](const Member& member) { return member.first == name; });
  return found == members->end() ? nullptr : &found->second;
}

const std::vector<Json::Member>* Json::members() const { return std::get_if<Object>(&value_); }

const std::vector<Json>* Json::items() const { return std::get_if<std::vector<Json>>(&value_); }

std::optional<double> Json::number() const {
  if (const auto* number = std::get_if<std::int64_t>(&value_)) return *number;
  if (const auto* number = std::get_if<std::uint64_t>(&value_)) return *number;
  if (const auto* number = std::get_if<double>(&value_)) return *number;
  return std::nullopt;
}

std::string Json::dump(int indent, bool ascii) const {
  return JsonConversion::to_library(*this).dump(indent, ' ', ascii,
                                                Library::error_handler_t::replace);
}

}  // namespace espalier::tools
