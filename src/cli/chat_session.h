#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "cli/generation_options.h"
#include "cli/local_engine.h"
#include "cli/model_options.h"
#include "cli/sampling_options.h"
#include "engine/conversation.h"

namespace quench::cli {

/// Of an answer, without -n.
inline constexpr std::size_t kDefaultAnswerTokens = 2048;

struct ChatOptions {
  ModelOptions model;
  SamplingOptions sampling;
  GenerationFlags generation;
  std::string system;
  std::string chat_template;
  bool think_on = false;
  bool think_off = false;
  bool no_escape = false;
  bool no_history = false;
};

/// A conversation in a terminal: one answer, or a loop of lines and slash commands.
class ChatSession {
 public:
  /// Loads the model. Throws Error(kBadRequest) when no built-in template fits and none is named.
  explicit ChatSession(ChatOptions options);

  /// Streams the answer to stdout. The interrupt flag stops it.
  GenerationResult answer(const std::string& message);
  /// Reads lines until the end of the input or /quit; returns the exit code. A failed turn is told and the loop goes on, unless the
  /// messages come from a script; a failed command never ends it. A script gets the first failure's code in the end.
  int interact();

 private:
  enum class Outcome { kGoOn, kQuit };

  [[nodiscard]] ConversationOptions conversation_options() const;
  [[nodiscard]] Thinking thinking() const noexcept;
  GenerationResult stream(const std::function<GenerationResult(const GenerationHooks&)>& turn);
  Outcome handle_line(const std::string& line);
  Outcome handle_command(const std::string& line);
  /// Says why a command failed and keeps its exit code.
  void attempt(const std::function<void()>& command);
  void set_thinking(const std::string& argument);
  void save(const std::string& file);
  void load(const std::string& file);
  void show_stats() const;

  ChatOptions options_;
  std::unique_ptr<ChatTemplate> template_;
  std::unique_ptr<Tokenizer> tokenizer_;
  std::unique_ptr<LoadedModel> loaded_;
  std::unique_ptr<LocalEngine> local_;
  std::unique_ptr<Conversation> conversation_;
  int failed_command_ = 0;  ///< exit code of the first, where messages come from a script
};

}  // namespace quench::cli
