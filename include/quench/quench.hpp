#pragma once

// quench as a C++ library: a model file, an engine that answers many requests at once, and what comes back.
//
//   quench::api::Model model = quench::api::Model::load("model.gguf");
//   quench::api::Engine engine(model);
//   quench::api::Conversation conversation(engine);
//   std::cout << conversation.send("What is the capital of France?").text;
//
// docs/library.md explains it, examples/ holds complete programs. What fails throws quench::api::Error; what a callback throws comes back
// as it is.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#if defined(__GNUC__)
#define QUENCH_API __attribute__((visibility("default")))
#else
#define QUENCH_API
#endif

namespace quench::api {

/// "0.1.0"
[[nodiscard]] QUENCH_API std::string_view version() noexcept;

/// Gives what quench has to say beside its results (warnings, in this version) to `receiver` instead of stderr: one message at a time, from
/// whichever thread it concerns, for the whole process. Empty: stderr again. It must not call quench, nor throw.
QUENCH_API void on_warning(std::function<void(std::string_view message)> receiver);

enum class ErrorCode {
  kBadRequest = 2,   ///< wrong usage, an impossible request, a context overflow
  kBadFile = 3,      ///< the file is damaged, truncated or contradicts itself
  kUnsupported = 4,  ///< the file or request is valid, but quench does not do it
  kOutOfMemory = 5,  ///< an allocation, a budget or the queue is exhausted
  kIo = 6,           ///< the operating system refused a read or write
  kInternal = 7,     ///< a defect of quench
};

/// The message names the thing at fault and, where there is one, the remedy.
class QUENCH_API Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  [[nodiscard]] ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

using Token = std::uint32_t;

enum class Role { kSystem, kUser, kAssistant };

struct Message {
  Role role = Role::kUser;
  std::string content{};
};

/// Whether a model that reasons shall do so before it answers.
enum class Thinking { kDefault, kOn, kOff };

struct ModelOptions {
  int threads = 0;              ///< for loading; 0: the physical cores that this process may use
  std::size_t window = 0;       ///< sliding window of so many positions in every layer; 0: as the file says
  std::string chat_template{};  ///< chatml, llama3, gemma, gemma4; empty: what the file calls for
  std::string pretokenizer{};   ///< instead of the file's; empty: as the file says
  std::function<void(std::uint64_t done, std::uint64_t total)> progress{};  ///< bytes read so far
};

class Engine;
class Stream;
class Conversation;

/// Weights, tokenizer and chat template. Immutable; copies share it. Any number of threads may use it at once.
class QUENCH_API Model {
 public:
  /// Reads a GGUF file, or all parts of a split one.
  [[nodiscard]] static Model load(const std::string& path, const ModelOptions& options = {});

  [[nodiscard]] const std::string& architecture() const noexcept;  ///< "qwen3"
  [[nodiscard]] std::size_t vocabulary_size() const noexcept;
  [[nodiscard]] std::size_t trained_context() const noexcept;  ///< tokens
  [[nodiscard]] std::size_t embedding_size() const noexcept;   ///< numbers in what Engine::embed gives
  [[nodiscard]] std::uint64_t weight_bytes() const noexcept;

  /// special: "<|im_end|>" in the text is that token; without it, it is text, as it must be in what users write
  [[nodiscard]] std::vector<Token> tokenize(std::string_view text, bool add_bos_eos = false, bool special = false) const;
  /// special: control tokens show as their names
  [[nodiscard]] std::string detokenize(std::span<const Token> tokens, bool special = false) const;
  /// The prompt that a model sees of these messages, its answer's turn opened. Contents name no special tokens.
  [[nodiscard]] std::vector<Token> chat_tokens(std::span<const Message> messages, Thinking thinking = Thinking::kDefault) const;
  /// Tokens that end a turn.
  [[nodiscard]] const std::vector<Token>& end_tokens() const noexcept;

 private:
  friend class Engine;
  friend class Stream;
  friend class Conversation;
  struct State;
  explicit Model(std::shared_ptr<const State> state) : state_(std::move(state)) {}
  std::shared_ptr<const State> state_;
};

struct LogitBias {
  Token token = 0;
  float bias = 0.0f;  ///< added to the logit; -infinity forbids the token
};

/// How tokens are drawn. What is absent is as the makers of the model recommend.
struct Sampling {
  std::optional<double> temperature{};  ///< 0: the most probable token
  std::optional<int> top_k{};           ///< 0: off
  std::optional<double> top_p{};        ///< 1: off
  std::optional<double> min_p{};        ///< 0: off
  std::optional<double> repeat_penalty{};
  std::optional<double> frequency_penalty{};
  std::optional<double> presence_penalty{};
  std::optional<int> repeat_last_n{};  ///< tokens that the penalties look back on; 0: off, -1: all
  std::vector<LogitBias> logit_bias{};
  std::optional<std::uint64_t> seed{};  ///< the same seed gives the same answer; absent: a random one

  // Rarer ones, each explained in docs/sampling.md.
  std::optional<double> typical_p{};        ///< 1: off
  std::optional<double> top_n_sigma{};      ///< 0: off
  std::optional<double> xtc_probability{};  ///< 0: off
  std::optional<double> xtc_threshold{};    ///< above 0.5: off
  std::optional<int> min_keep{};            ///< top_p, min_p, typical_p and XTC leave at least this many tokens
  std::optional<double> dynatemp_range{};   ///< 0: off
  std::optional<double> dynatemp_exponent{};
  std::optional<double> dry_multiplier{};  ///< 0: off
  std::optional<double> dry_base{};
  std::optional<int> dry_allowed_length{};
  std::optional<int> dry_penalty_last_n{};                 ///< tokens looked back on; 0: off, -1: all
  std::optional<std::vector<std::string>> dry_breakers{};  ///< texts no repetition runs across; absent: line feed, colon, quote, asterisk
  std::optional<int> mirostat{};                           ///< 0: off, 2
  std::optional<double> mirostat_tau{};
  std::optional<double> mirostat_eta{};
  /// Which steps, in which order, as "penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature".
  std::optional<std::string> samplers{};
};

/// What to answer: one of prompt, prompt_tokens and messages.
struct Request {
  std::string prompt{};                ///< a text to continue; special tokens in it are recognised
  std::vector<Token> prompt_tokens{};  ///< the same, as tokens
  std::vector<Message> messages{};     ///< a conversation to answer, through the chat template
  Thinking thinking = Thinking::kDefault;

  /// Prompt and so many tokens must fit the context. Absent: until the model ends its answer or the context is full.
  std::optional<std::size_t> max_tokens{};
  std::size_t n_answers = 1;         ///< they share the prompt's computation; answer i has the seed + i
  std::vector<std::string> stop{};   ///< texts that end an answer and are no part of it
  std::vector<Token> stop_tokens{};  ///< beside the model's own end tokens
  bool ignore_end = false;           ///< go on past the model's end tokens
  bool show_special = false;         ///< control tokens in the text
  bool echo = false;                 ///< each answer's text begins with the prompt
  Sampling sampling{};

  /// For each token, the logarithm of its probability and of this many of the most probable ones: those of the model itself, before bias,
  /// penalties, temperature and truncation.
  std::optional<std::size_t> top_log_probabilities{};
  /// The same for each token of the prompt but the first; the whole prompt is computed then, whatever is known of it.
  std::optional<std::size_t> prompt_log_probabilities{};
  int priority = 0;                         ///< the higher, the sooner
  std::optional<double> timeout_seconds{};  ///< above 0; after it the answers end as they are
  bool speculate = true;                    ///< guess tokens and check several in one pass: the answer is the same
  std::vector<std::string> references{};    ///< texts that the answer may quote, to guess from
};

enum class Finish {
  kEnd,          ///< the model ended its turn, or a stop token came
  kStop,         ///< a stop text came
  kLength,       ///< max_tokens
  kContextFull,  ///< the context has no room for another token
  kTimeout,
  kCancelled,
  kFailed  ///< Answer::error says why
};

struct TokenProbability {
  Token token = 0;
  std::string text{};            ///< its bytes: perhaps a part of a character
  float log_probability = 0.0f;  ///< natural logarithm
};

struct TokenLogProbabilities {
  TokenProbability chosen{};
  std::vector<TokenProbability> top{};  ///< most probable first
};

struct Answer {
  std::string text{};
  std::vector<Token> tokens{};  ///< without the one that ended it
  Finish finish = Finish::kEnd;
  std::optional<Error> error{};                                   ///< of kFailed; the answer is empty then
  std::vector<TokenLogProbabilities> log_probabilities{};         ///< of each token, where they are asked for
  std::vector<TokenLogProbabilities> prompt_log_probabilities{};  ///< [prompt_tokens - 1], where they are asked for
  std::size_t prompt_tokens = 0;
  std::size_t cached_tokens = 0;  ///< of the prompt, found computed
  double prompt_seconds = 0.0;    ///< for those that were not
  double answer_seconds = 0.0;    ///< from the first token on
};

/// Something that happened to a request.
struct Event {
  enum class Kind {
    kPrompt,  ///< `done` of `total` prompt tokens are computed
    kToken,   ///< a token was drawn; `text` is what it lets out, often nothing
    kEnd      ///< the answer is complete; `text` is what was still held back
  };
  Kind kind = Kind::kPrompt;
  std::size_t answer = 0;  ///< which of n_answers
  std::size_t done = 0;
  std::size_t total = 0;
  Token token = 0;
  std::string text{};  ///< whole UTF-8 characters, and never a part of a stop text
  std::optional<TokenLogProbabilities> log_probabilities{};
  /// kPrompt: of the prompt's tokens since the event before, where they are asked for.
  std::vector<TokenLogProbabilities> prompt_log_probabilities{};
  Finish finish = Finish::kEnd;  ///< of Kind::kEnd; why an answer failed stands in what Stream::finish gives
};

/// A request under way. For one thread at a time, any one. What is not read waits, and holds up nobody. Destroying it cancels what is not
/// complete.
class QUENCH_API Stream {
 public:
  Stream(Stream&&) noexcept;
  Stream& operator=(Stream&&) noexcept;
  ~Stream();

  /// Waits for the next event; nothing after the end of the last answer.
  [[nodiscard]] std::optional<Event> next();
  /// Waits no longer than that; nothing, too, when nothing came.
  [[nodiscard]] std::optional<Event> next_within(std::chrono::milliseconds time);
  /// Whether every answer has ended and every event was taken.
  [[nodiscard]] bool done() const;
  /// Ends the answers as they are. Any thread may do it.
  void cancel();
  /// Waits for the end and gives all answers, once. Throws when all of them failed; when some did, they say so and the others are whole.
  [[nodiscard]] std::vector<Answer> finish();

 private:
  friend class Engine;
  struct State;
  explicit Stream(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

enum class CacheType { kF16, kQ8_0 };

struct EngineOptions {
  int threads = 0;                ///< 0: the physical cores that this process may use
  std::size_t context = 0;        ///< tokens of a prompt and its answer; 0: what the model was trained for, bounded by memory
  std::uint64_t cache_bytes = 0;  ///< budget of the KV cache, fixed at start; 0: half of the memory that is free
  CacheType cache_type = CacheType::kF16;
  std::size_t chunk = 512;                                   ///< most tokens in a pass
  std::size_t max_running = 64;                              ///< answers side by side
  std::size_t max_waiting = 4096;                            ///< answers in the queue
  std::string saved_cache{};                                 ///< file that keeps computed prefixes from run to run; empty: none
  std::uint64_t saved_cache_bytes = std::uint64_t{4} << 30;  ///< largest size of that file, 1 MiB at least; what was used last stays
};

struct EngineStats {
  std::size_t running = 0;
  std::size_t waiting = 0;
  std::uint64_t prompt_tokens = 0;
  std::uint64_t cached_tokens = 0;  ///< of those, found computed
  std::uint64_t drafted_tokens = 0;
  std::uint64_t accepted_tokens = 0;  ///< of those
  std::uint64_t preemptions = 0;
  std::uint64_t cache_used_bytes = 0;
  std::uint64_t cache_budget_bytes = 0;
  std::size_t cached_positions = 0;
};

/// Answers requests of any number of threads side by side, on a thread of its own, and starts each from the longest prefix that any of them
/// has computed. An answer depends on its request alone. Copies share it; it ends with the last copy, stream and conversation.
class QUENCH_API Engine {
 public:
  explicit Engine(const Model& model, const EngineOptions& options = {});

  /// Refuses at once what can never be computed, and when the queue is full.
  [[nodiscard]] Stream submit(const Request& request) const;
  /// Submits and waits.
  [[nodiscard]] std::vector<Answer> complete(const Request& request) const { return submit(request).finish(); }

  /// The embedding of a text, pooled as the model's file says (else its last token), of length 1. The model's own BOS and EOS are added.
  [[nodiscard]] std::vector<float> embed(std::string_view text) const;

  /// For each token but the first, the logarithm of its probability after those before it, and of the `top` most probable ones: what
  /// Request::top_log_probabilities gives for the tokens of an answer. [tokens - 1] Nothing is added to the tokens: a model that wants a
  /// BOS needs it, so take them from Model::tokenize(text, true).
  [[nodiscard]] std::vector<TokenLogProbabilities> score(std::span<const Token> tokens, std::size_t top = 0) const;

  [[nodiscard]] EngineStats stats() const;
  [[nodiscard]] std::size_t context() const noexcept;
  [[nodiscard]] const Model& model() const noexcept;
  /// Adds what was computed to the file `saved_cache`. Nothing without one.
  void save_cache() const;

 private:
  friend class Stream;
  friend class Conversation;
  struct State;
  std::shared_ptr<State> state_;
};

struct ConversationOptions {
  std::string system{};  ///< empty: no system message
  Thinking thinking = Thinking::kDefault;
  Sampling sampling{};
  std::vector<std::string> stop{};
  std::size_t max_tokens = 2048;            ///< of an answer
  std::optional<double> timeout_seconds{};  ///< of a turn, above 0; after it the answer ends as it is, and is kept
  bool speculate = true;
};

/// A dialogue. A turn that throws or is cancelled leaves it as it was before. One thread at a time; any number of conversations share an
/// engine. While a turn is under way, what would change the conversation (from a callback, say) throws Error(kBadRequest).
class QUENCH_API Conversation {
 public:
  explicit Conversation(const Engine& engine, const ConversationOptions& options = {});
  Conversation(Conversation&&) noexcept;
  Conversation& operator=(Conversation&&) noexcept;
  ~Conversation();

  /// Called on the thread that waits, with whole UTF-8 characters; false cancels the turn.
  using OnText = std::function<bool(std::string_view text)>;
  /// Called there, too, as the prompt is computed: `done` of its `total` tokens, those found computed included; false cancels the turn.
  using OnPrompt = std::function<bool(std::size_t done, std::size_t total)>;

  /// Adds a message and its answer.
  Answer send(const std::string& message, const OnText& on_text = {}, const OnPrompt& on_prompt = {});
  /// Answers the last message again, with fresh random numbers.
  Answer regenerate(const OnText& on_text = {}, const OnPrompt& on_prompt = {});
  /// Ends the turn under way. Any thread may do it.
  void cancel() noexcept;
  /// Takes back the last message and its answer, and returns the message; nothing when there is none.
  std::optional<std::string> undo();
  void reset();

  [[nodiscard]] std::vector<Message> messages() const;
  [[nodiscard]] std::uint64_t seed() const noexcept;
  /// System message and messages, as JSON.
  [[nodiscard]] std::string to_json() const;
  /// Replaces them; changes nothing when it throws.
  void from_json(std::string_view json);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace quench::api
