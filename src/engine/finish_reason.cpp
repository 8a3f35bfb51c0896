#include "engine/finish_reason.h"

namespace quench {

std::string_view finish_name(FinishReason reason) noexcept {
  switch (reason) {
    case FinishReason::kEndToken: return "stop";
    case FinishReason::kStopText: return "stop text";
    case FinishReason::kLength: return "length";
    case FinishReason::kContextFull: return "context full";
    case FinishReason::kDeadline: return "deadline";
    case FinishReason::kCancelled: return "cancelled";
  }
  return "?";
}

}  // namespace quench
