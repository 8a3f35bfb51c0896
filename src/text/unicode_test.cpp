#include "text/unicode.h"

#include <gtest/gtest.h>

#include <string>

namespace quench {
namespace {

struct Decoded {
  std::vector<char32_t> values;
  std::size_t bytes = 0;
};

Decoded decode_all(std::string_view text) {
  Decoded out;
  while (out.bytes < text.size()) {
    const CodePoint c = decode_utf8(text, out.bytes);
    out.values.push_back(c.value);
    out.bytes += c.bytes;
  }
  return out;
}

TEST(Unicode, ClassesFollowTheGeneralCategory) {
  const std::pair<char32_t, CharSet> cases[] = {
      {'a', kLetter},         {'0', kNumber},     {'!', kPunctuation}, {'$', kSymbol},     {' ', kBlank},      {'\t', kBlank},
      {'\n', kNewline},       {'\r', kNewline},   {'\v', kBlank},      {0x1C, kOther},     {0x85, kBlank},     {0xA0, kBlank},
      {0xAD, kOther},         {0xB2, kNumber},    {0xE9, kLetter},     {0x301, kMark},     {0x1C5, kLetter},   {0x2B0, kLetter},
      {0x378, kOther},        {0x661, kNumber},   {0x93E, kMark},      {0x20DD, kMark},    {0x180E, kOther},   {0x200B, kOther},
      {0x200D, kOther},       {0x2028, kBlank},   {0x2029, kBlank},    {0x2160, kNumber},  {0x20AC, kSymbol},  {0x3000, kBlank},
      {0x3001, kPunctuation}, {0x4E2D, kLetter},  {0xAC00, kLetter},   {0xE000, kOther},   {0xFEFF, kOther},   {0xFFFD, kSymbol},
      {0x1F600, kSymbol},     {0x2EBF0, kLetter}, {0xE0100, kMark},    {0x10FFFF, kOther}, {0x110000, kOther}, {kUndecodable, kOther}};
  for (const auto& [value, set] : cases) EXPECT_EQ(class_of(value), set) << std::hex << static_cast<std::uint32_t>(value);
}

TEST(Unicode, EveryCodePointHasOneClass) {
  for (char32_t value = 0; value <= 0x10FFFF; ++value) {
    const CharSet set = class_of(value);
    ASSERT_EQ(set & (set - 1), 0) << std::hex << static_cast<std::uint32_t>(value);
    ASSERT_NE(set, 0);
  }
}

TEST(Unicode, EveryScalarValueSurvivesEncodingAndDecoding) {
  for (char32_t value = 0; value <= 0x10FFFF; ++value) {
    if (value >= 0xD800 && value <= 0xDFFF) continue;
    std::string text;
    append_utf8(value, text);
    const CodePoint c = decode_utf8(text, 0);
    ASSERT_EQ(c.value, value);
    ASSERT_EQ(c.bytes, text.size());
    ASSERT_EQ(c.set, class_of(value));
  }
}

TEST(Unicode, AnUndecodableByteIsOneCodePointOfNoClass) {
  const std::string_view bad[] = {
      "\x80",              // a continuation alone
      "\xC0\xAF",          // overlong, two bytes
      "\xC1\xBF",          // overlong, two bytes
      "\xE0\x9F\xBF",      // overlong, three bytes
      "\xF0\x8F\xBF\xBF",  // overlong, four bytes
      "\xED\xA0\x80",      // a surrogate
      "\xF4\x90\x80\x80",  // past U+10FFFF
      "\xF5\x80\x80\x80",  // no such lead
      "\xFF",
      "\xE2\x82",  // cut short
      "\xF0\x9F\x98",
      "\xC3",
  };
  for (const std::string_view text : bad) {
    const Decoded all = decode_all(text);
    EXPECT_EQ(all.values, std::vector<char32_t>(text.size(), kUndecodable)) << testing::PrintToString(text);
    EXPECT_EQ(decode_utf8(text, 0).set, kOther);
  }
}

TEST(Unicode, DecodingGoesOnAtTheByteAfterAnUndecodableOne) {
  EXPECT_EQ(decode_all("\xE2\x82z\xC3\xA9").values, (std::vector<char32_t>{kUndecodable, kUndecodable, 'z', 0xE9}));
  EXPECT_EQ(decode_all("\xF0\xC3\xA9").values, (std::vector<char32_t>{kUndecodable, 0xE9}));
}

TEST(Unicode, PastTheEndThereIsNoClassAndNoLength) {
  const CodePoint c = decode_utf8("ab", 2);
  EXPECT_EQ(c.bytes, 0);
  EXPECT_EQ(c.set, 0);
}

}  // namespace
}  // namespace quench
