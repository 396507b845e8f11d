#pragma once
// JSON values to print, and those read from a file. Only json.cc includes the JSON library, which
// takes seconds to compile. Host only.

#include <array>
#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace espalier::tools {

// A value: null, a boolean, a number, a string, an array, or an object that keeps the order of its
// members.
class Json {
 public:
  Json(std::nullptr_t = nullptr) {}
  Json(bool value) : value_(value) {}
  Json(double value) : value_(value) {}
  template <std::signed_integral T>
  Json(T value) : value_(static_cast<std::int64_t>(value)) {}
  template <std::unsigned_integral T>
  requires(!std::same_as<T, bool>) Json(T value) : value_(static_cast<std::uint64_t>(value)) {}
  Json(const char* text) : value_(std::string(text)) {}
  Json(std::string text) : value_(std::move(text)) {}
  template <typename T>
  requires std::is_enum_v<T> Json(T value) : Json(static_cast<std::int64_t>(value)) {}
  template <typename T, std::size_t Size>
  Json(const std::array<T, Size>& items) : value_(std::vector<Json>(items.begin(), items.end())) {}
  template <typename T>
  Json(const std::vector<T>& items) : value_(std::vector<Json>(items.begin(), items.end())) {}
  // An object if every item is an array of a string and a value, as in {{"a", 1}, {"b", 2}};
  // otherwise an array.
  Json(std::initializer_list<Json> items);
  [[nodiscard]] static Json array() { return Json(std::vector<Json>()); }
  [[nodiscard]] static Json object();
  // The value that `text` is; nothing if it is not JSON, or is nested more than 100 times.
  [[nodiscard]] static std::optional<Json> parse(const std::string& text);

  // The member of this name, added as null if there is none. A null becomes an object first.
  Json& operator[](std::string_view name);
  // Adds a member that an object does not have yet; faster than operator[], which looks for it.
  void add(std::string name, Json value);
  // Appends to an array.
  void push_back(Json item);
  [[nodiscard]] Json& back();
  [[nodiscard]] bool empty() const;  // whether an array or object has no item

  // The member of this name; null if there is none or this is not an object.
  [[nodiscard]] const Json* find(std::string_view name) const;
  // The items of an array; null if this is not one.
  [[nodiscard]] const std::vector<Json>* items() const;
  // The members of an object; null if this is not one.
  using Member = std::pair<std::string, Json>;
  [[nodiscard]] const std::vector<Member>* members() const;
  // The value of a string; null if this is not one.
  [[nodiscard]] const std::string* text() const { return std::get_if<std::string>(&value_); }
  [[nodiscard]] bool is_null() const { return std::holds_alternative<std::nullptr_t>(value_); }
  // The value of a number; nothing if this is not one.
  [[nodiscard]] std::optional<double> number() const;
  [[nodiscard]] bool is_object() const { return std::holds_alternative<Object>(value_); }

  // The text, indented by `indent` spaces per level; on one line if that is negative. `ascii`:
  // other characters are escaped. Text that is not UTF-8 gets replacement characters.
  [[nodiscard]] std::string dump(int indent = -1, bool ascii = false) const;

 private:
  using Object = std::vector<Member>;
  friend struct JsonConversion;

  std::variant<std::nullptr_t, bool, std::int64_t, std::uint64_t, double, std::string,
               std::vector<Json>, Object>
      value_ = nullptr;
};

}  // namespace espalier::tools
