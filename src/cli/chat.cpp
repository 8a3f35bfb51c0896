#include <fmt/format.h>

#include <cstdlib>
#include <memory>
#include <optional>

#include "base/error.h"
#include "cli/chat_session.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/terminal.h"

namespace quench::cli {
namespace {

int answer_once(ChatSession& session, const std::string& message) {
  const GenerationResult result = session.answer(message);
  if (result.finish != FinishReason::kCancelled) return 0;
  return kInterruptedExitCode;
}

int run_chat(ChatOptions options) {
  (void)options.model.take_model(1);
  std::optional<std::string> message;
  if (!options.model.words.empty())
    message = options.no_escape ? options.model.words.front() : process_escapes(options.model.words.front());
  ChatSession session(std::move(options));
  const InterruptGuard interrupt;
  if (message) return answer_once(session, *message);
  return session.interact();
}

}  // namespace

void add_chat(CLI::App& app, Action& action) {
  auto options = std::make_shared<ChatOptions>();
  CLI::App* command = app.add_subcommand("chat", "Answer one message, or talk");
  command->footer(
      "Example:\n  quench chat model.gguf 'What is the capital of France?' --temp 0\n"
      "Without a message it is interactive; /help lists the commands there.");
  add_model_argument(*command, options->model, "MODEL [MESSAGE]", "GGUF file; what to answer, without it an interactive chat");
  command->add_option("--system,--sys,--system-prompt", options->system, "System message")->type_name("TEXT");
  command
      ->add_option("--chat-template", options->chat_template,
                   "chatml, llama3, gemma or gemma4 instead of what the file's template calls for")
      ->type_name("NAME");
  CLI::Option* on = command->add_flag("--think", options->think_on, "Let a reasoning model reason; default: as the model's template does");
  command->add_flag("--no-think", options->think_off, "Do not let it reason")->excludes(on);
  command->add_flag("--no-escape", options->no_escape, "Take \\n and the like in the message literally");
  command->add_flag("--ignore-history", options->no_history, "Keep no history of typed lines on disk");
  options->generation.add_to(*command,
                             fmt::format("Most tokens of an answer; {} without it, -1 = until the context is full", kDefaultAnswerTokens));
  add_compute_options(*command, options->model);
  add_engine_options(*command, options->model);
  add_tokenizer_options(*command, options->model);
  options->sampling.add_to(*command);
  command->callback([options, &action] { action = [options] { return run_chat(*options); }; });
}

}  // namespace quench::cli
