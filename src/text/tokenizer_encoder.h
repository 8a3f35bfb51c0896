#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "text/token.h"
#include "text/tokenizer_cache.h"
#include "text/tokenizer_merge.h"
#include "text/tokenizer_vocab.h"

namespace quench {

/// In place of the unknown token: a byte without a token leaves this mark among the ids, and the tokenizer takes the marks out.
constexpr Token kSkipToken = kNoToken - 1;

/// A symbol of SentencePiece merging: a range of the piece.
struct TextRange {
  std::uint32_t begin = 0;
  std::uint32_t bytes = 0;
};

/// Memory of one encoding call; kept and reused by later calls.
struct EncodeScratch {
  PieceCache cache;
  MergeBuffers merge;
  std::vector<std::uint32_t> symbols;
  std::vector<TextRange> ranges;
  std::vector<std::size_t> ends;
  std::string text;
};

/// Turns text without special tokens into ids. Immutable and shared between threads.
class Encoder {
 public:
  Encoder() = default;
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;
  virtual ~Encoder() = default;

  /// Appends the ids of `run`. `after_special`: it begins the text or follows a special token, where a space prefix goes.
  virtual void encode(std::string_view run, bool after_special, EncodeScratch& scratch, std::vector<Token>& out) const = 0;
  /// Appends the end of each of the pre-tokenizer's pieces of `text`.
  virtual void pieces(std::string_view text, std::vector<std::size_t>& ends) const = 0;
};

/// Error(kBadRequest): a byte of the text that the vocabulary cannot express. Dropping it would change the text in silence.
class InexpressibleByte : public Error {
 public:
  /// `offset` in the text, where it is known: encoders do not know it.
  explicit InexpressibleByte(unsigned char byte, std::optional<std::size_t> offset = std::nullopt);

  [[nodiscard]] unsigned char byte() const noexcept { return byte_; }
  [[nodiscard]] std::optional<std::size_t> offset() const noexcept { return offset_; }

 private:
  unsigned char byte_;
  std::optional<std::size_t> offset_;
};

}  // namespace quench
