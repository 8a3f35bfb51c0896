#include "text/stream_decoder.h"

#include <gtest/gtest.h>

#include "text/tokenizer_vocab.h"

namespace quench {
namespace {

std::unique_ptr<Tokenizer> bytes_only() {
  TokenizerParts parts;
  for (unsigned b = 0; b < 256; ++b) parts.tokens.push_back(byte_character(static_cast<unsigned char>(b)));
  parts.tokens.emplace_back("<|im_end|>");
  return Tokenizer::from_parts(parts);
}

/// What comes out at each byte, separated by '|', and after '#' what flush gives.
std::string stream(std::string_view bytes) {
  const auto tokenizer = bytes_only();
  StreamDecoder decoder(*tokenizer);
  std::string out;
  for (const char c : bytes) {
    const auto ids = tokenizer->encode_raw(std::string_view(&c, 1), Specials::kAsText);
    out += decoder.push(ids.at(0)) + "|";
  }
  return out + "#" + decoder.flush();
}

TEST(StreamDecoder, HoldsACharacterUntilItIsComplete) {
  EXPECT_EQ(stream("a\xE4\xBD\xA0"
                   "b"),
            "a|||\xE4\xBD\xA0|b|#");
  EXPECT_EQ(stream("\xF0\x9F\x98\x80"), "|||\xF0\x9F\x98\x80|#");
}

TEST(StreamDecoder, FlushesAnIncompleteTailAsOneReplacement) {
  EXPECT_EQ(stream("a\xF0\x9F\x98"), "a||||#\xEF\xBF\xBD");
  EXPECT_EQ(stream("\xC3"), "|#\xEF\xBF\xBD");
}

TEST(StreamDecoder, BytesThatCanNeverBeValidComeOutAtOnce) {
  EXPECT_EQ(stream("\xFF"), "\xEF\xBF\xBD|#");
  EXPECT_EQ(stream("\x80"), "\xEF\xBF\xBD|#");
  EXPECT_EQ(stream("\xE4"
                   "a"),
            "|\xEF\xBF\xBD"
            "a|#");
  EXPECT_EQ(stream("\xE4\xE4\xBD\xA0"), "|\xEF\xBF\xBD||\xE4\xBD\xA0|#");
}

TEST(StreamDecoder, OverlongFormsAndSurrogatesAreMalformed) {
  EXPECT_EQ(stream("\xC0\x80"), "\xEF\xBF\xBD|\xEF\xBF\xBD|#");
  EXPECT_EQ(stream("\xE0\x80"), "|\xEF\xBF\xBD\xEF\xBF\xBD|#");
  EXPECT_EQ(stream("\xED\xA0\x80"), "|\xEF\xBF\xBD\xEF\xBF\xBD|\xEF\xBF\xBD|#");
  EXPECT_EQ(stream("\xF4\x90"), "|\xEF\xBF\xBD\xEF\xBF\xBD|#");
}

TEST(StreamDecoder, IsAsNewAfterAFlush) {
  const auto tokenizer = bytes_only();
  StreamDecoder decoder(*tokenizer);
  EXPECT_EQ(decoder.push(*tokenizer->find_token(byte_character(0xC3))), "");
  EXPECT_EQ(decoder.flush(), "\xEF\xBF\xBD");
  EXPECT_EQ(decoder.flush(), "");
  EXPECT_EQ(decoder.push(*tokenizer->find_token("a")), "a");
}

TEST(StreamDecoder, SpecialsAreHiddenUnlessAskedFor) {
  const auto tokenizer = bytes_only();
  EXPECT_EQ(StreamDecoder(*tokenizer).push(256), "");
  EXPECT_EQ(StreamDecoder(*tokenizer, true).push(256), "<|im_end|>");
}

}  // namespace
}  // namespace quench
