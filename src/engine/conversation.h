#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/generation.h"
#include "engine/generator.h"
#include "sample/sampler.h"
#include "text/chat_template.h"
#include "text/tokenizer.h"

namespace quench {

struct ConversationOptions {
  std::string system{};  ///< empty: no system message
  Thinking thinking = Thinking::kDefault;
  SamplerSettings sampler{};
  std::vector<std::string> stop_texts{};
  std::vector<Token> stop_ids{};  ///< beside the tokenizer's end tokens
  std::size_t max_new_tokens = 2048;
  std::optional<double> deadline_seconds{};  ///< of a turn; after it the answer ends as it is
  bool speculate = true;
  std::vector<ReferenceText> references{};  ///< what answers may copy from
};

/// Totals over the turns that were kept.
struct ConversationStats {
  std::size_t turns = 0;
  GenerationStats last;
  GenerationStats total;
  std::size_t context_used = 0;  ///< tokens of the last prompt and its answer
  std::size_t context = 0;
};

/// A dialogue with one model: messages and a sampler. Every turn renders the whole history anew, and the engine computes only what its
/// prefix cache does not hold yet, so that what the model sees depends on the messages alone.
///
/// Transactional: a turn that throws or is cancelled leaves messages, sampler and random stream as they were before it. One thread at a
/// time; conversations on one SharedGenerator need not know of each other.
class Conversation {
 public:
  /// All of these outlive the conversation. Throws Error(kBadRequest) for settings out of range.
  Conversation(Generator& generator, const Tokenizer& tokenizer, const ChatTemplate& chat_template, ConversationOptions options);

  /// One turn. A cancelled one returns what was said with FinishReason::kCancelled; the turn is not kept. Throws Error(kBadRequest)
  /// when the conversation exceeds the context (both numbers), and as `generate` does.
  GenerationResult send(std::string message, const GenerationHooks& hooks = {});
  /// Answers the last message again, with fresh random numbers. The old answer comes back when this turn fails or is cancelled.
  /// Throws Error(kBadRequest) when there is no answer yet.
  GenerationResult regenerate(const GenerationHooks& hooks = {});
  /// Takes back the last message and its answer and returns the message; nothing when there is none.
  std::optional<std::string> undo();
  /// Forgets all messages; the system message and the settings stay.
  void reset();

  void set_system(std::string system) { options_.system = std::move(system); }
  void set_thinking(Thinking thinking) { options_.thinking = thinking; }
  /// Starts a new random stream. Throws Error(kBadRequest) for settings out of range.
  void set_sampler(SamplerSettings settings);
  void add_processor(std::unique_ptr<LogitProcessor> processor) { sampler_.add_processor(std::move(processor)); }

  [[nodiscard]] const ConversationOptions& options() const noexcept { return options_; }
  /// User and assistant messages in turn; answers as the model gave them, reasoning included.
  [[nodiscard]] std::span<const ChatMessage> messages() const noexcept { return messages_; }
  [[nodiscard]] std::uint64_t seed() const noexcept { return sampler_.seed(); }
  [[nodiscard]] ConversationStats stats() const;

  /// The prompt that `send` would compute for these messages, as tokens.
  [[nodiscard]] std::vector<Token> render(std::span<const ChatMessage> messages) const;

  /// System message and messages; see conversation_file.h.
  [[nodiscard]] std::string to_json() const;
  /// Replaces system message and messages. Throws Error(kBadFile) naming what is wrong, and changes nothing then.
  void from_json(std::string_view text);

 private:
  GenerationResult take_turn(std::vector<ChatMessage> messages, const GenerationHooks& hooks);

  Generator& generator_;
  const Tokenizer& tokenizer_;
  const ChatTemplate& template_;
  ConversationOptions options_;
  GenerationOptions generation_;
  Sampler sampler_;
  std::vector<ChatMessage> messages_;
  ConversationStats stats_;
};

}  // namespace quench
