#include <fmt/format.h>

#include <memory>

#include "base/error.h"
#include "base/file.h"
#include "cli/commands.h"
#include "cli/model_options.h"
#include "cli/terminal.h"
#include "text/tokenizer.h"

namespace quench::cli {
namespace {

struct TokenizeOptions {
  ModelOptions model;
  bool no_special = false;
  bool add_special = false;
  bool chunks = false;
  bool pieces = false;
  bool time = false;
};

std::unique_ptr<Tokenizer> load_tokenizer(const std::string& path, const TokenizerOptions& options) {
  const gguf::Reader reader(path);
  return naming_file(path, [&] { return Tokenizer::from_metadata(reader.metadata(), options); });
}

std::vector<Token> encode(const Tokenizer& tokenizer, const TokenizeOptions& options, std::string_view text) {
  std::vector<Token> ids = tokenizer.encode_raw(text, options.no_special ? Specials::kAsText : Specials::kRecognise);
  return options.add_special ? tokenizer.with_bos_eos(std::move(ids)) : ids;
}

/// A piece as one line: control characters, quotes and backslashes are escaped, other bytes stand as they are.
std::string printable(std::string_view bytes) {
  std::string line = "\"";
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '\n') {
      line += "\\n";
    } else if (c == '"' || c == '\\') {
      line += {'\\', c};
    } else if (byte < 0x20 || byte == 0x7F) {
      line += fmt::format("\\x{:02x}", byte);
    } else {
      line.push_back(c);
    }
  }
  return line + "\"";
}

int run_tokenize(TokenizeOptions options) {
  const std::string model = options.model.take_model(1);
  const std::string file = options.model.words.empty() ? "-" : options.model.words.front();
  // As llama.cpp does, but with a warning: bytes for which the vocabulary has no token at all are left out.
  options.model.tokenizer.skip_inexpressible = true;
  const auto tokenizer = load_tokenizer(model, options.model.tokenizer);
  const std::string text = read_text(file, kTextFileLimitBytes);
  std::string out;
  if (options.chunks) {
    for (const std::string_view chunk : tokenizer->chunks(text)) out += printable(chunk) + "\n";
    write_answer(out);
    return 0;
  }
  const double start = now_seconds();
  const std::vector<Token> ids = encode(*tokenizer, options, text);
  const double seconds = now_seconds() - start;
  for (const Token id : ids) {
    out += options.pieces ? fmt::format("{} {}\n", id, printable(tokenizer->token_bytes(id, true))) : fmt::format("{}\n", id);
  }
  write_answer(out);
  if (options.time) fmt::print(stderr, "encode: {:.6f} s, {} tokens\n", seconds, ids.size());
  return 0;
}

struct DetokenizeOptions {
  ModelOptions model;
  std::string ids;
  bool no_special = false;
};

int run_detokenize(DetokenizeOptions options) {
  constexpr std::size_t kMostWords = std::size_t{1} << 20;
  const std::string model = options.model.take_model(kMostWords);
  std::string text = options.ids;
  bool from_input = false;  // which may hold none
  for (const std::string& word : options.model.words) {
    from_input |= word == "-";
    text += " " + (word == "-" ? read_text(word, kTextFileLimitBytes) : word);
  }
  const std::vector<Token> ids = parse_ids(text);
  if (ids.empty() && !from_input) throw_bad_request("no ids: give them after the model or with --ids, or - to read standard input");
  const auto tokenizer = load_tokenizer(model, options.model.tokenizer);
  for (const Token id : ids) {
    if (id >= tokenizer->vocab_size()) {
      throw_bad_request(fmt::format("id {} is outside the vocabulary of {}", id, tokenizer->vocab_size()));
    }
  }
  write_answer(tokenizer->decode(ids, !options.no_special));
  return 0;
}

}  // namespace

void add_tokenize(CLI::App& app, Action& action) {
  auto options = std::make_shared<TokenizeOptions>();
  CLI::App* command = app.add_subcommand("tokenize", "Text to token ids, one a line");
  command->footer("Example:\n  echo -n 'Hello world' | quench tokenize model.gguf -");
  add_model_argument(*command, options->model, "MODEL [FILE]",
                     "GGUF file (one with a vocabulary only will do); the text, - or nothing for standard input");
  add_tokenizer_options(*command, options->model);
  command->add_flag("--no-special", options->no_special, "Special tokens in the text are plain text");
  command->add_flag("--add-special", options->add_special, "Add BOS and EOS as the model wants them");
  command->add_flag("--chunks", options->chunks, "Show the pre-tokenizer's pieces instead of ids");
  command->add_flag("--pieces", options->pieces, "Show each token's text beside its id");
  command->add_flag("--time", options->time, "Say on stderr how long encoding took");
  command->callback([options, &action] { action = [options] { return run_tokenize(*options); }; });
}

void add_detokenize(CLI::App& app, Action& action) {
  auto options = std::make_shared<DetokenizeOptions>();
  CLI::App* command = app.add_subcommand("detokenize", "Token ids to text");
  command->footer("Example:\n  quench detokenize model.gguf 504 3575 282 4649");
  add_model_argument(*command, options->model, "MODEL IDS...", "GGUF file; the ids, - for standard input");
  add_tokenizer_options(*command, options->model);
  command->add_option("--ids", options->ids, "Ids, separated by spaces or commas")->type_name("IDS");
  command->add_flag("--no-special", options->no_special, "Leave control tokens out");
  command->callback([options, &action] { action = [options] { return run_detokenize(*options); }; });
}

}  // namespace quench::cli
