#include <filesystem>
#include <utility>

#include "api/state.h"
#include "base/log.h"
#include "engine/chat_prompt.h"

namespace quench::api {

std::string_view version() noexcept { return QUENCH_VERSION; }

void on_warning(std::function<void(std::string_view message)> receiver) {
  if (!receiver) return set_log_receiver({});
  set_log_receiver([receiver = std::move(receiver)](LogLevel, std::string_view message) { receiver(message); });
}

const ChatTemplate& Model::State::needed_template() const {
  if (chat_template) return *chat_template;
  throw_unsupported(
      reader.path().string() +
      ": its chat template is none that is built in (chatml, llama3, gemma, gemma4); name one in ModelOptions::chat_template");
}

Model Model::load(const std::string& path, const ModelOptions& options) {
  return translating([&] {
    check_threads(options.threads);
    if (path.empty()) throw_bad_request("the path of the model is empty");
    gguf::Reader reader(path);
    ThreadPool pool(options.threads);
    LoadOptions load;
    load.window = options.window;
    load.progress = options.progress;
    auto tokenizer = Tokenizer::from_metadata(reader.metadata(), {.pre_override = options.pretokenizer});
    auto chat_template =
        options.chat_template.empty() ? chat_template_from(reader.metadata()) : chat_template_by_name(options.chat_template);
    auto dry_breakers = std::make_unique<DryBreakers>(*tokenizer);
    auto weights = quench::Model::load(reader, load, pool);
    return Model(std::shared_ptr<const State>(new State{.reader = std::move(reader),
                                                        .window = options.window,
                                                        .model = std::move(weights),
                                                        .tokenizer = std::move(tokenizer),
                                                        .dry_breakers = std::move(dry_breakers),
                                                        .chat_template = std::move(chat_template)}));
  });
}

const std::string& Model::architecture() const noexcept { return state_->model.config().architecture; }
std::size_t Model::vocabulary_size() const noexcept { return state_->model.config().n_vocab; }
std::size_t Model::trained_context() const noexcept { return state_->model.config().context_length; }
std::size_t Model::embedding_size() const noexcept { return state_->model.config().n_embed; }
std::uint64_t Model::weight_bytes() const noexcept { return state_->reader.total_file_bytes(); }

std::vector<Token> Model::tokenize(std::string_view text, bool add_bos_eos, bool special) const {
  return translating([&] {
    const Specials specials = special ? Specials::kRecognise : Specials::kAsText;
    std::vector<Token> tokens = state_->tokenizer->encode_raw(text, specials);
    return add_bos_eos ? state_->tokenizer->with_bos_eos(std::move(tokens)) : tokens;
  });
}

std::string Model::detokenize(std::span<const Token> tokens, bool special) const {
  return translating([&] {
    for (const Token token : tokens) {
      if (token >= vocabulary_size()) throw_bad_request("token id " + std::to_string(token) + " is outside the vocabulary");
    }
    return state_->tokenizer->decode(tokens, special);
  });
}

std::vector<Token> Model::chat_tokens(std::span<const Message> messages, Thinking thinking) const {
  return translating(
      [&] { return chat_prompt(*state_->tokenizer, state_->needed_template(), to_chat_messages(messages), to_thinking(thinking)); });
}

const std::vector<Token>& Model::end_tokens() const noexcept { return state_->tokenizer->end_tokens(); }

}  // namespace quench::api
