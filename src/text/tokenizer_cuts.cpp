#include "text/tokenizer_cuts.h"

namespace quench {
namespace {

bool is_continuation(char c) { return (static_cast<unsigned char>(c) & 0xC0u) == 0x80u; }

void set_bit(std::uint64_t* words, std::size_t bit) { words[bit / 64] |= std::uint64_t{1} << (bit % 64); }

}  // namespace

void SafeCuts::add(std::string_view product) {
  for (std::size_t at = 1; at < product.size(); ++at) {
    if (is_continuation(product[at])) continue;  // no character of a text begins here
    std::size_t start = at - 1;
    while (start > 0 && is_continuation(product[start])) --start;
    const Character left = character_at(product.substr(0, at), start);
    const Character right = character_at(product, at);
    const bool whole = left.packed != 0 && right.packed != 0 && start + left.bytes == at;
    if (!whole) {
      set_bit(partial_.data(), partial_bit(static_cast<unsigned char>(product[at - 1]), static_cast<unsigned char>(product[at])));
    } else if (left.bytes == 1 && right.bytes == 1) {
      set_bit(ascii_.data(), ((left.packed & 0x7Fu) << 7) | (right.packed & 0x7Fu));
    } else {
      set_bit(pairs_.data(), pair_bit(left.packed, right.packed));
    }
  }
}

}  // namespace quench
