#include "text/pretokenizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"

namespace quench {
namespace {

/// The pieces of `text` with a bar between them.
std::string cut(std::string_view name, std::string_view text) {
  const auto rules = pretokenizer_from_name(name);
  if (!rules) return "unknown name";
  std::vector<std::size_t> ends;
  pretokenize(*rules, text, ends);
  std::string joined;
  std::size_t begin = 0;
  for (const std::size_t end : ends) {
    if (begin > 0) joined += '|';
    joined += text.substr(begin, end - begin);
    begin = end;
  }
  EXPECT_EQ(begin, text.size());
  return joined;
}

std::size_t count(PreTokenizer rules, std::string_view text) {
  std::vector<std::size_t> ends;
  pretokenize(rules, text, ends);
  return ends.size();
}

TEST(PreTokenizer, Qwen2TakesDigitsOneByOne) {
  EXPECT_EQ(cut("qwen2", "1234567"), "1|2|3|4|5|6|7");
  EXPECT_EQ(cut("qwen2", "3.14"), "3|.|1|4");
  EXPECT_EQ(cut("qwen2", "I'll pay 42 euros!\n"), "I|'ll| pay| |4|2| euros|!\n");
  EXPECT_EQ(cut("qwen2", "\u0661\u0662\u0663"), "\u0661|\u0662|\u0663");
}

TEST(PreTokenizer, Qwen2CutsContractionsInAnyAsciiCase) {
  EXPECT_EQ(cut("qwen2", "it's IT'S we'Ve don'T x'y"), "it|'s| IT|'S| we|'Ve| don|'T| x|'y");
  EXPECT_EQ(cut("qwen2", "'\u017Fo"), "'\u017Fo") << "U+017F folds to s in Unicode, not here";
  EXPECT_EQ(cut("qwen2", "'re're'r"), "'re|'re|'r");
}

TEST(PreTokenizer, Qwen2LetsOneCharacterStandBeforeAWord) {
  EXPECT_EQ(cut("qwen2", "(foo bar)\tbaz"), "(foo| bar|)|\tbaz");
  EXPECT_EQ(cut("qwen2", "--foo"), "--|foo");
  EXPECT_EQ(cut("qwen2", "\nfoo"), "\n|foo");
  EXPECT_EQ(cut("qwen2", "e\u0301a"), "e|\u0301a") << "a mark is no letter";
}

TEST(PreTokenizer, Qwen2LeavesTheLastBlankToTheNextPiece) {
  EXPECT_EQ(cut("qwen2", "a   b"), "a|  | b");
  EXPECT_EQ(cut("qwen2", "a   1"), "a|  | |1");
  EXPECT_EQ(cut("qwen2", "a   "), "a|   ");
  EXPECT_EQ(cut("qwen2", "a \n \n  b"), "a| \n \n| | b");
  EXPECT_EQ(cut("qwen2", "a\u3000\u3000b"), "a|\u3000|\u3000b");
  EXPECT_EQ(cut("qwen2", " !\r\n\r\n  x"), " !\r\n\r\n| | x");
}

TEST(PreTokenizer, MarksJoinTheWordWithQwen35) {
  EXPECT_EQ(cut("qwen35", "e\u0301a \u0915\u093F"), "e\u0301a| \u0915\u093F");
  EXPECT_EQ(cut("qwen2", "\u0915\u093F"), "\u0915|\u093F");
}

TEST(PreTokenizer, Llama3TakesThreeDigits) {
  EXPECT_EQ(cut("llama-bpe", "1234567 89"), "123|456|7| |89");
  EXPECT_EQ(cut("llama3", "\u0661\u0662\u0663\u0664"), "\u0661\u0662\u0663|\u0664");
}

TEST(PreTokenizer, Gpt2PutsASpaceBeforeWordsNumbersAndSigns) {
  EXPECT_EQ(cut("gpt-2", "I'll pay 42 euros!\n"), "I|'ll| pay| 42| euros|!|\n");
  EXPECT_EQ(cut("gpt-2", "I'LL"), "I|'|LL");
  EXPECT_EQ(cut("gpt-2", "a  \n\n b"), "a|  \n\n| b");
  EXPECT_EQ(cut("gpt-2", "\tx (y)"), "\t|x| (|y|)");
}

TEST(PreTokenizer, StarcoderCutsDigitsBeforeAnythingElse) {
  EXPECT_EQ(cut("smollm", "pay 42 x"), "pay| |4|2| x");
  EXPECT_EQ(cut("refact", "a   1"), "a|   |1") << "the blanks end at the digit's own piece";
  EXPECT_EQ(cut("starcoder", "v\u00B2"), "v|\u00B2");
}

TEST(PreTokenizer, FalconCutsTriplesOutOfNumbers) {
  EXPECT_EQ(cut("falcon", "a 12345!?"), "a| |123|45|!?");
  EXPECT_EQ(cut("falcon", "`x`"), "`|x|`");
  EXPECT_EQ(cut("default", " 12345"), " |123|45");
  EXPECT_EQ(cut("default", "a `x"), "a| `|x") << "a backtick is no sign of default's own";
}

TEST(PreTokenizer, DeepseekSetsKeepUnmatchedTextTogether) {
  EXPECT_EQ(cut("deepseek-v3", "12345 it's"), "123|45| it|'s");
  EXPECT_EQ(cut("deepseek-v3", "\u4E2D\u6587\u3042abc"), "\u4E2D\u6587\u3042|abc");
  EXPECT_EQ(cut("deepseek-v3", "\x01\x02\x03z"), "\x01\x02|\x03z");
  EXPECT_EQ(cut("deepseek-llm", "a b\n\n12  "), "a| b|\n|\n|12|  ");
  EXPECT_EQ(cut("deepseek-llm", "\u3000\u3001x"), "\u3000|\u3001|x");
  EXPECT_EQ(cut("deepseek-coder", "x 12, y"), "x| |1|2|,| y");
  EXPECT_EQ(cut("spark2_5", "a\n\n1234"), "a|\n|\n|1|2|3|4");
}

TEST(PreTokenizer, AsciiCaseCutsWordsWithTekkenAndGpt4o) {
  EXPECT_EQ(cut("tekken", "HelloWorld XMLHttp"), "Hello|World| XMLHttp");
  EXPECT_EQ(cut("gpt-4o", "don't \u00C9AB 1234"), "don't| \u00C9|AB| |123|4");
  EXPECT_EQ(cut("tekken", "don't 12"), "don|'t| |1|2");
  EXPECT_EQ(cut("gpt-4o", "a://b\n/!"), "a|://|b|\n|/!");
  EXPECT_EQ(cut("granite-embed-multi-97m", "\u0915\u093F\u0924"), "\u0915\u093F\u0924");
}

TEST(PreTokenizer, KimiKeepsHanRunsApart) {
  EXPECT_EQ(cut("kimi-k2", "\u4E2D\u6587abc's 1234"), "\u4E2D\u6587|abc's| |123|4");
  EXPECT_EQ(cut("kimi-k2", "-\u4E2D"), "-|\u4E2D");
}

TEST(PreTokenizer, DigitGroupsCountFromTheRight) {
  EXPECT_EQ(cut("tiny_aya", "1234567"), "1|234|567");
  EXPECT_EQ(cut("superbpe", "pay 1234567 to me"), "pay |1|234|567| to me");
  EXPECT_EQ(cut("afmoe", "   1234"), "  | |1|234") << "the blanks are in one piece with the first group when they are cut";
}

TEST(PreTokenizer, EachOtherSetHasItsOwnRule) {
  EXPECT_EQ(cut("jais-2", "a       b"), "a|    |  | b");
  EXPECT_EQ(cut("exaone-moe", "one two  three"), "one two| | three");
  EXPECT_EQ(cut("seed-coder", "!\nx"), "!|\n|x");
  EXPECT_EQ(cut("ufakzeka", "Ankara'da"), "Ankara|'da");
  EXPECT_EQ(cut("laguna", "a\n\n b"), "a|\n\n| b");
  EXPECT_EQ(cut("minicpm5", "12345  6"), "123|45|  |6");
  EXPECT_EQ(cut("gemma4", "a b\n\nc"), "a b|\n\n|c");
  EXPECT_EQ(cut("whitespace", "a  b"), "a|  |b");
  EXPECT_EQ(cut("bloom", "one, (two)"), "one|, (|two|)");
  EXPECT_EQ(cut("viking", "ab12"), "ab|1|2");
  EXPECT_EQ(cut("chameleon", "IMGIMGABZ   x\n"), "IMGIMGABZ|  | x|\n");
  EXPECT_EQ(cut("youtu", "\uD55C\u4E2D \uFF01a"), "\uD55C|\u4E2D| |\uFF01|a");
}

TEST(PreTokenizer, UndecodableBytesAreInPiecesToo) {
  for (const std::string_view name : pretokenizer_names()) {
    for (const std::string_view text : {"\xFF", "a\x80z", "\xE2\x82", "\xC3 \xC3", "1\xF0\x9F\x98 2", "\n\xED\xA0\x80\n"}) {
      std::string joined = cut(name, text);
      std::erase(joined, '|');
      EXPECT_EQ(joined, text) << name;
    }
  }
}

TEST(PreTokenizer, RandomBytesAreCoveredByPiecesThatAreNotEmpty) {
  Xoshiro256 random(7);
  std::vector<std::size_t> ends;
  for (int i = 0; i < 2000; ++i) {
    std::string text;
    for (std::uint64_t left = random.below(40); left > 0; --left) {
      text +=
          static_cast<char>(random.below(2) ? random.below(256) : static_cast<std::uint64_t>(" \n'1a\xE2\xC3\xF0\x80"[random.below(9)]));
    }
    for (const std::string_view name : pretokenizer_names()) {
      ends.assign(1, 0);
      pretokenize(*pretokenizer_from_name(name), text, ends);
      ASSERT_EQ(ends.back(), text.size()) << name << testing::PrintToString(text);
      ASSERT_TRUE(std::is_sorted(ends.begin(), ends.end(), std::less_equal<>{})) << name << testing::PrintToString(text);
    }
  }
}

TEST(PreTokenizer, EmptyTextHasNoPieces) {
  for (const std::string_view name : pretokenizer_names()) EXPECT_EQ(cut(name, ""), "") << name;
}

TEST(PreTokenizer, EndsAreAppendedAndGrow) {
  std::vector<std::size_t> ends{7};
  pretokenize(fallback_pretokenizer(), "a b", ends);
  EXPECT_EQ(ends, (std::vector<std::size_t>{7, 1, 3}));
}

/// Cuts `unit`, repeated to this length, by every rule set.
void cut_repeated(std::string_view unit, std::size_t bytes) {
  std::string text;
  while (text.size() < bytes) text += unit;
  text += 'x';
  std::set<PreTokenizer> rules;
  for (const std::string_view name : pretokenizer_names()) rules.insert(*pretokenizer_from_name(name));
  for (const PreTokenizer each : rules) EXPECT_GT(count(each, text), 0u);
}

TEST(PreTokenizer, LongRunsTakeLinearTime) {
  const auto start = std::chrono::steady_clock::now();
  for (const std::string_view unit : {"a", "Z", "1", " ", "\n", "!", "\x80", "\u0301", "\u3000", "\u4E2D"}) cut_repeated(unit, 1 << 20);
  for (const std::string_view unit : {"'", "\t", "\x01", "\u00E9", "'s", " a", " \n", "\u00C9Z", "a ", "<sentinel:", "IMGIMG", "\u0301!"}) {
    cut_repeated(unit, 1 << 17);
  }
  // 350 MiB in all: seconds. A quadratic step in any of the rules takes hours for one of the runs.
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::minutes(2));
}

TEST(PreTokenizerNames, AreAllDistinctAndKnown) {
  std::set<std::string_view> names;
  for (const std::string_view name : pretokenizer_names()) {
    EXPECT_TRUE(names.insert(name).second) << name;
    EXPECT_TRUE(pretokenizer_from_name(name).has_value());
  }
  EXPECT_FALSE(pretokenizer_from_name("no-such-rules").has_value());
  EXPECT_FALSE(pretokenizer_from_name("").has_value());
}

TEST(PreTokenizerNames, AliasesShareTheirRules) {
  EXPECT_EQ(pretokenizer_from_name("falcon3"), pretokenizer_from_name("llama-bpe"));
  EXPECT_EQ(pretokenizer_from_name("deepseek-r1-qwen"), pretokenizer_from_name("qwen2"));
  EXPECT_EQ(pretokenizer_from_name("command-r"), pretokenizer_from_name("smollm"));
  EXPECT_EQ(pretokenizer_from_name("llama4"), pretokenizer_from_name("gpt-4o"));
  EXPECT_EQ(pretokenizer_from_name(pretokenizer_name(fallback_pretokenizer())), PreTokenizer::kQwen2);
  EXPECT_EQ(pretokenizer_from_name(pretokenizer_name(default_pretokenizer())), PreTokenizer::kDefault);
  for (const std::string_view name : pretokenizer_names()) {
    const auto rules = pretokenizer_from_name(name);
    EXPECT_EQ(pretokenizer_from_name(pretokenizer_name(*rules)), rules) << "the name of a rule set is one of its names";
  }
}

TEST(PreTokenizerNames, SomeDecideMoreThanTheCuts) {
  EXPECT_TRUE(pretokenizer_traits("llama-bpe").ignore_merges);
  EXPECT_EQ(pretokenizer_traits("llama-bpe").add_bos, true);
  EXPECT_FALSE(pretokenizer_traits("qwen2").ignore_merges);
  EXPECT_EQ(pretokenizer_traits("qwen2").add_bos, std::nullopt);
  EXPECT_FALSE(pretokenizer_traits("qwen2").clean_spaces);
  EXPECT_TRUE(pretokenizer_traits("gpt-2").clean_spaces);
  EXPECT_TRUE(pretokenizer_traits("glm4").no_default_bos);
  EXPECT_FALSE(pretokenizer_traits("gemma4").byte_encode);
  EXPECT_FALSE(pretokenizer_traits("no-such-rules").clean_spaces) << "the fallback's";
}

}  // namespace
}  // namespace quench
