#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "gguf/metadata.h"

namespace quench {

/// The smallest vocabulary that holds all bytes and special tokens, and some merges.
inline constexpr std::uint64_t kLeastSynthVocabulary = 512;

/// The tokenizer.* keys of a generated vocabulary of exactly `n_vocab` entries: byte-level BPE with valid merges for qwen3, qwen2 and llama
/// (ChatML or, from 100,000 entries on, Llama 3's special tokens), SentencePiece with scores and byte tokens for gemma3.
[[nodiscard]] gguf::Metadata generate_vocabulary(std::string_view family, std::uint64_t n_vocab, std::uint64_t seed);

/// The tokenizer.* keys of a GGUF file, with unused tokens [PADn] up to `least_entries`. Throws Error(kBadFile) when there is none.
[[nodiscard]] gguf::Metadata copy_vocabulary(const std::filesystem::path& file, std::uint64_t least_entries);

/// Entries of tokenizer.ggml.tokens.
[[nodiscard]] std::uint64_t vocabulary_size(const gguf::Metadata& tokenizer);

}  // namespace quench
