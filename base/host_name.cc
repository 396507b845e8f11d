#include "base/host_name.h"

#include <algorithm>
#include <cctype>

namespace espalier {

bool is_host_name(std::string_view name) {
  const std::size_t at = name.find('@');
  return !name.empty() && name.front() != '-' && at != 0 && at + 1 != name.size() &&
         std::all_of(name.begin(), name.end(), [](unsigned char letter) {
           return std::isalnum(letter) != 0 ||
                  std::string_view(".-_:@%").find(static_cast<char>(letter)) !=
                      std::string_view::npos;
         });
}

}  // namespace espalier
