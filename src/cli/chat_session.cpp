#include "cli/chat_session.h"

#include <fmt/format.h>

#include <cstdlib>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "cli/interrupt.h"
#include "cli/line_editor.h"
#include "cli/terminal.h"

namespace quench::cli {
namespace {

constexpr std::uint64_t kConversationLimitBytes = std::uint64_t{64} << 20;

constexpr const char* kHelp =
    "  /system TEXT   set the system message (empty: none)\n"
    "  /think on|off  let the model reason, or not\n"
    "  /reset         forget the conversation\n"
    "  /regen         answer the last message again\n"
    "  /undo          take back the last message and its answer\n"
    "  /save FILE     write the conversation as JSON\n"
    "  /load FILE     read one\n"
    "  /stats         tokens, speed, context\n"
    "  /quit          leave (so does Ctrl-D)\n"
    "  Ctrl-C stops an answer. A line that ends with a backslash goes on in the next; a line of three double quotes starts and ends a "
    "text\n"
    "  of several lines.\n";

constexpr std::string_view kBlockMark = "\"\"\"";

std::filesystem::path history_path() {
  const char* home = std::getenv("HOME");
  if (home == nullptr || *home == '\0') return {};
  return std::filesystem::path(home) / ".cache" / "quench" / "chat_history";
}

std::unique_ptr<ChatTemplate> pick_template(const ChatOptions& options, const gguf::Reader& reader) {
  if (!options.chat_template.empty()) return chat_template_by_name(options.chat_template);
  auto found = chat_template_from(reader.metadata());
  if (!found) {
    throw_bad_request(reader.path().string() + ": the file names no chat template that is built in; choose one with --chat-template " +
                      "(chatml, llama3, gemma, gemma4), or continue plain text with `quench run`");
  }
  return found;
}

/// A message of one or more lines; nothing at the end of the input.
std::optional<std::string> read_message(LineEditor& editor) {
  const std::string more = styled(Style::kDim, "... ");
  auto line = editor.read_line(styled(Style::kPrompt, "> "));
  if (!line) return std::nullopt;
  std::string text;
  if (*line == kBlockMark) {
    while (true) {
      line = editor.read_line(more);
      if (!line || *line == kBlockMark || interrupt_flag().load()) return text;
      text += (text.empty() ? "" : "\n") + *line;
    }
  }
  while (line && line->ends_with('\\')) {
    text += line->substr(0, line->size() - 1) + "\n";
    line = editor.read_line(more);
  }
  return text + line.value_or("");
}

}  // namespace

ChatSession::ChatSession(ChatOptions options) : options_(std::move(options)) {
  {
    // The cheap checks come before the weights.
    const gguf::Reader reader(options_.model.model);
    require_weights(reader);
    template_ = pick_template(options_, reader);
    tokenizer_ = naming_file(options_.model.model, [&] { return Tokenizer::from_metadata(reader.metadata(), options_.model.tokenizer); });
  }
  loaded_ = std::make_unique<LoadedModel>(options_.model.model, options_.model);
  local_ = std::make_unique<LocalEngine>(*loaded_, options_.model);
  const ContextPlan& plan = local_->plan();
  if (plan.limited_by_memory() && stderr_is_terminal()) {
    fmt::print(stderr, "context: {} tokens of {} (bounded by memory; --ctx asks for more)\n", plan.context, plan.trained);
  }
  conversation_ = std::make_unique<Conversation>(local_->generator(), *tokenizer_, *template_, conversation_options());
}

Thinking ChatSession::thinking() const noexcept {
  if (options_.think_on) return Thinking::kOn;
  return options_.think_off ? Thinking::kOff : Thinking::kDefault;
}

ConversationOptions ChatSession::conversation_options() const {
  const GenerationOptions generation = options_.generation.generation_options(*tokenizer_, kDefaultAnswerTokens);
  ConversationOptions result;
  result.system = options_.system;
  result.thinking = thinking();
  const SamplerSettings defaults = sampling_defaults(loaded_->model.config().architecture, template_->thinks(result.thinking));
  result.sampler = options_.sampling.settings(defaults, *tokenizer_);
  result.stop_texts = generation.stop_texts;
  result.stop_ids = options_.generation.stop_ids;
  result.max_new_tokens = generation.max_new_tokens;
  result.speculate = generation.speculate;
  result.references = generation.references;
  return result;
}

GenerationResult ChatSession::stream(const std::function<GenerationResult(const GenerationHooks&)>& turn) {
  GenerationHooks hooks;
  hooks.cancel = &interrupt_flag();
  hooks.on_text = [](std::string_view text) { write_answer(text); };
  const GenerationResult result = naming_file(options_.model.model, [&] { return turn(hooks); });
  if (!result.text.ends_with('\n')) write_answer("\n");
  if (result.finish == FinishReason::kLength) {
    fmt::print(stderr, "{}\n", styled(Style::kDim, fmt::format("stopped after {} tokens; -n N allows more", result.tokens.size())));
  }
  if (result.finish == FinishReason::kContextFull) {
    fmt::print(stderr, "{}\n", styled(Style::kDim, fmt::format("stopped: the context of {} tokens is full", local_->plan().context)));
  }
  if (options_.generation.stats) print_stats(result);
  // A turn that was answered is not undone because its cache could not be kept.
  attempt([this] { local_->save_cache(); });
  return result;
}

GenerationResult ChatSession::answer(const std::string& message) {
  if (!conversation_->options().sampler.greedy())
    fmt::print(stderr, "{}\n", styled(Style::kDim, fmt::format("seed: {}", conversation_->seed())));
  return stream([&](const GenerationHooks& hooks) { return conversation_->send(message, hooks); });
}

int ChatSession::interact() {
  LineEditor editor(options_.no_history ? std::filesystem::path() : history_path());
  if (stderr_is_terminal()) {
    fmt::print(stderr, "{}: /help lists the commands, Ctrl-D leaves, seed {}\n", loaded_->reader.path().filename().string(),
               conversation_->seed());
  }
  while (true) {
    interrupt_flag().store(false);
    const auto message = read_message(editor);
    if (!message) return failed_command_;
    if (interrupt_flag().load() || message->empty()) continue;
    try {
      if (handle_line(*message) == Outcome::kQuit) return failed_command_;
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::kIo) throw;
      fmt::print(stderr, "quench: {}\n", error.what());
      // A script that pipes its messages in wants to know; a person reads on.
      if (!stdin_is_terminal()) return exit_code(error.kind());
    }
  }
}

ChatSession::Outcome ChatSession::handle_line(const std::string& line) {
  if (line.starts_with('/')) return handle_command(line);
  const auto result = stream([&](const GenerationHooks& hooks) { return conversation_->send(line, hooks); });
  if (result.finish == FinishReason::kCancelled) fmt::print(stderr, "{}\n", styled(Style::kDim, "(stopped; the turn is not kept)"));
  return Outcome::kGoOn;
}

ChatSession::Outcome ChatSession::handle_command(const std::string& line) {
  const std::size_t space = line.find(' ');
  const std::string name = line.substr(0, space);
  const std::string argument =
      space == std::string::npos
          ? ""
          : line.substr(line.find_first_not_of(' ', space) == std::string::npos ? line.size() : line.find_first_not_of(' ', space));
  if (name == "/quit" || name == "/exit") return Outcome::kQuit;
  if (name == "/help") {
    fmt::print(stderr, "{}", kHelp);
  } else if (name == "/system") {
    conversation_->set_system(argument);
  } else if (name == "/think") {
    set_thinking(argument);
  } else if (name == "/reset") {
    conversation_->reset();
  } else if (name == "/regen") {
    (void)stream([&](const GenerationHooks& hooks) { return conversation_->regenerate(hooks); });
  } else if (name == "/undo") {
    const auto taken_back = conversation_->undo();
    fmt::print(stderr, "{}\n", taken_back ? "took back: " + *taken_back : "there is nothing to take back");
  } else if (name == "/save") {
    attempt([&] { save(argument); });
  } else if (name == "/load") {
    attempt([&] { load(argument); });
  } else if (name == "/stats") {
    show_stats();
  } else {
    fmt::print(stderr, "unknown command {}; /help lists them\n", name);
  }
  return Outcome::kGoOn;
}

void ChatSession::attempt(const std::function<void()>& command) {
  try {
    command();
  } catch (const Error& error) {
    fmt::print(stderr, "quench: {}\n", error.what());
    if (failed_command_ == 0 && !stdin_is_terminal()) failed_command_ = exit_code(error.kind());
  }
}

void ChatSession::set_thinking(const std::string& argument) {
  if (argument != "on" && argument != "off") {
    fmt::print(stderr, "/think takes on or off\n");
    return;
  }
  options_.think_on = argument == "on";
  options_.think_off = argument == "off";
  conversation_->set_thinking(thinking());
  // The recommended sampling differs between the two.
  conversation_->set_sampler(conversation_options().sampler);
}

void ChatSession::save(const std::string& file) {
  if (file.empty()) throw_bad_request("/save takes a file name");
  FileWriter writer(file);
  writer.write(conversation_->to_json());
  writer.commit();
  fmt::print(stderr, "saved {} messages to {}\n", conversation_->messages().size(), file);
}

void ChatSession::load(const std::string& file) {
  if (file.empty()) throw_bad_request("/load takes a file name");
  const std::string text = read_text(file, kConversationLimitBytes);
  naming_file(file, [&] { conversation_->from_json(text); });
  fmt::print(stderr, "loaded {} messages from {}\n", conversation_->messages().size(), file);
}

void ChatSession::show_stats() const {
  const ConversationStats stats = conversation_->stats();
  fmt::print(stderr,
             "turns: {}, context: {} of {} tokens\nlast answer: {} prompt tokens ({} cached), {:.1f} tok/s; {} tokens, {:.1f} tok/s\n",
             stats.turns, stats.context_used, stats.context, stats.last.prompt_tokens, stats.last.cached_tokens,
             stats.last.prefill_tokens_per_second(), stats.last.generated_tokens, stats.last.decode_tokens_per_second());
}

}  // namespace quench::cli
