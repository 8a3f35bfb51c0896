#include "quant/integer_form.h"

namespace quench {

IntegerShape integer_shape(Format format) noexcept { return format_info(format).shape; }

void to_integer_form(Format format, const std::byte* block, IntegerBlock& out) noexcept { format_info(format).unpack(block, out); }

}  // namespace quench
