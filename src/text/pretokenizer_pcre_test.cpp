// The scanners against the split expressions themselves, run by PCRE2 over random text.
//
// The expressions are llama.cpp's, where it writes one that it executes; where it has code of its own in the place of an expression, the
// expression here says what that code does. `published` rows are the models' own, wherever the two mean the same. PCRE2 10.42 has
// Unicode 14 and its \s holds U+180E, which since Unicode 6.3 is no white space: random text has neither.

#define PCRE2_CODE_UNIT_WIDTH 8
#include <gtest/gtest.h>
#include <pcre2.h>

#include <cctype>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <ostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "text/pretokenizer.h"
#include "text/unicode.h"

namespace quench {
namespace {

using Pieces = std::vector<std::string_view>;

/// One compiled expression.
class Expression {
 public:
  explicit Expression(const std::string& pattern) {
    int error = 0;
    PCRE2_SIZE at = 0;
    code_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(), PCRE2_UTF | PCRE2_UCP, &error, &at, nullptr));
    if (!code_) throw std::runtime_error("error " + std::to_string(error) + " at " + std::to_string(at) + " of " + pattern);
    pcre2_jit_compile(code_.get(), PCRE2_JIT_COMPLETE);
    match_.reset(pcre2_match_data_create_from_pattern(code_.get(), nullptr));
  }

  /// Appends the matches in `text`, and what lies between them, to `out`.
  void split(std::string_view text, Pieces& out) {
    const auto add = [&](std::size_t begin, std::size_t end) {
      if (begin < end) out.push_back(text.substr(begin, end - begin));
    };
    std::size_t done = 0;
    for (std::size_t from = 0; from <= text.size();) {
      const int found =
          pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from, PCRE2_NO_UTF_CHECK, match_.get(), nullptr);
      if (found == PCRE2_ERROR_NOMATCH) break;
      if (found < 0) throw std::runtime_error("PCRE2 error " + std::to_string(found));
      const PCRE2_SIZE* span = pcre2_get_ovector_pointer(match_.get());
      add(done, span[0]);
      add(span[0], span[1]);
      done = span[1];
      from = span[1] > span[0] ? span[1] : span[1] + std::max<std::size_t>(1, decode_utf8(text, span[1]).bytes);
    }
    add(done, text.size());
  }

  /// Whether it matches anywhere in `text`.
  bool matches(std::string_view text) {
    return pcre2_match(code_.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), 0, PCRE2_NO_UTF_CHECK, match_.get(), nullptr) >
           0;
  }

 private:
  struct FreeCode {
    void operator()(pcre2_code* code) const { pcre2_code_free(code); }
  };
  struct FreeMatch {
    void operator()(pcre2_match_data* match) const { pcre2_match_data_free(match); }
  };
  std::unique_ptr<pcre2_code, FreeCode> code_;
  std::unique_ptr<pcre2_match_data, FreeMatch> match_;
};

struct Case {
  std::string_view name;
  PreTokenizer rules;
  std::vector<std::string> expressions;  ///< applied one after the other, each to the pieces of the one before
  std::u32string avoid = {};             ///< where the published expression means something else
};

// What the expressions have in common.
const std::string kGpt2Re = R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
const std::string kContractionRe = R"((?:'[sS]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD]))";
const std::string kAnyCaseRe = R"((?i:'s|'t|'re|'ve|'m|'ll|'d))";
const std::string kWordRe = R"([^\r\n\p{L}\p{N}]?\p{L}+)";
const std::string kWordWithMarksRe = R"([^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+)";
const std::string kOtherRe = R"( ?[^\s\p{L}\p{N}]+[\r\n]*)";
const std::string kOtherAndSlashesRe = R"( ?[^\s\p{L}\p{N}]+[\r\n/]*)";
const std::string kSpacesRe = R"(\s*[\r\n]+|\s+(?!\S)|\s+)";
const std::string kHalvingSpacesRe =
    R"(\s*[\r\n]+|\s{512}(?!\S)|\s{256}(?!\S)|\s{128}(?!\S)|\s{64}(?!\S)|\s{32}(?!\S)|\s{16}(?!\S)|\s{8}(?!\S)|)"
    R"(\s{4}(?!\S)|\s{1,2}(?!\S)|\s{1})";
const std::string kBloomRe = R"( ?[^(\s|.,!?\x{2026}\x{3002}\x{FF0C}\x{3001}\x{964}\x{6D4}\x{60C})]+)";
const std::string kHanAndKanaRe = R"([\x{4E00}-\x{9FA5}\x{3040}-\x{309F}\x{30A0}-\x{30FF}]+)";
const std::string kSignAndAsciiWordRe = R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+)";
const std::string kDeepseekV3Re =
    kSignAndAsciiWordRe + R"(|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
// White space beyond ASCII is in none of the ranges, as llama.cpp executes them: U+2000 to 200A, 2028, 2029, 202F, 205F, 3000; 1680.
const std::string kDeepseekCjkRe = R"((?:(?!\s)[\x{4E00}-\x{9FA5}\x{800}-\x{4E00}\x{AC00}-\x{D7FF}])+)";
// The digits from the right in groups of three; the first group takes what stands before it along.
const std::string kDigitGroupsRe = R"([^\p{N}]*\p{N}{1,3}(?=(?:\p{N}{3})*(?!\p{N})))";

/// Words of `letters` with ASCII case: llama.cpp's way to write [\p{Lu}...]*[\p{Ll}...]+ | [\p{Lu}...]+[\p{Ll}...]*.
std::string cased(const std::string& letters, const std::string& after) {
  const std::string upper = "(?:(?=[" + letters + "])(?:[^a-z]))", lower = "(?:(?=[" + letters + "])(?:[^A-Z]))";
  const std::string prefix = R"([^\r\n\p{L}\p{N}]?)";
  return prefix + upper + "*" + lower + "+" + after + "|" + prefix + upper + "+" + lower + "*" + after;
}

const std::string kDeepseekLettersRe =
    R"(\s?[A-Za-z\x{B5}\x{C0}-\x{D6}\x{D8}-\x{F6}\x{F8}-\x{1BA}\x{1BC}-\x{1BF}\x{1C4}-\x{293}\x{295}-\x{2AF}\x{370}-\x{373}\x{376}\x{377})"
    R"(\x{37B}-\x{37D}\x{37F}\x{386}\x{388}-\x{38A}\x{38C}\x{38E}-\x{3A1}\x{3A3}-\x{3F5}\x{3F7}-\x{481}\x{48A}-\x{52F}\x{531}-\x{556})"
    R"(\x{10A0}-\x{10C5}\x{13A0}-\x{13F5}\x{13F8}-\x{13FD}\x{1C90}-\x{1CBA}\x{1CBD}-\x{1CBF}\x{1D00}-\x{1D2B}\x{1D6B}-\x{1D77})"
    R"(\x{1D79}-\x{1D9A}\x{1E00}-\x{1F15}\x{1F18}-\x{1F1D}\x{1F20}-\x{1F45}\x{1F48}-\x{1F4D}\x{1F50}-\x{1F57}\x{1F59}\x{1F5B}\x{1F5D})"
    R"(\x{1F5F}-\x{1F7D}\x{1F80}-\x{1FB4}\x{1FB6}-\x{1FBC}\x{1FBE}\x{1FC2}-\x{1FC4}\x{1FC6}-\x{1FCC}\x{1FD0}-\x{1FD3}\x{1FD6}-\x{1FDB})"
    R"(\x{1FE0}-\x{1FEC}\x{1FF2}-\x{1FF4}\x{1FF6}-\x{1FFC}\x{2102}\x{2107}\x{210A}-\x{2113}\x{2115}\x{2119}-\x{211D}\x{2124}\x{2126})"
    R"(\x{2128}\x{212A}-\x{212D}\x{212F}-\x{2134}\x{2139}\x{213C}-\x{213F}\x{2145}-\x{2149}\x{214E}\x{2183}\x{2184}\x{2C00}-\x{2C7B})"
    R"(\x{2C7E}-\x{2CE4}\x{2CEB}-\x{2CEE}\x{2CF2}\x{2CF3}\x{A640}-\x{A66D}\x{A680}-\x{A69B}\x{A722}-\x{A76F}\x{A771}-\x{A787})"
    R"(\x{A78B}-\x{A78E}\x{AB70}-\x{ABBF}\x{FB00}-\x{FB06}\x{FB13}-\x{FB17}\x{FF21}-\x{FF3A}\x{FF41}-\x{FF5A}\x{10400}-\x{1044F})"
    R"(\x{104B0}-\x{104D3}\x{104D8}-\x{104FB}\x{10C80}-\x{10CB2}\x{10CC0}-\x{10CF2}\x{118A0}-\x{118DF}\x{1E900}-\x{1E943}]+)";

std::vector<Case> cases() {
  using P = PreTokenizer;
  const std::string han = R"(\x{4E00}-\x{9FFF}\x{3400}-\x{4DBF}\x{20000}-\x{2A6DF}\x{2A700}-\x{2EBEF}\x{F900}-\x{FAFF}\x{2F800}-\x{2FA1F})";
  const std::string cjk_runs =
      R"([\x{AC00}-\x{D7A3}\x{3131}-\x{318E}]+|[\x{FF01}\x{2026}\x{201C}\x{201D}\x{2018}\x{2019}\x{2014}\x{FF1A}\x{FF1B}\x{FF0C})"
      R"(\x{3001}-\x{303F}\x{FE30}-\x{FE4F}]+|[\x{3105}-\x{312F}]+|)" +
      kHanAndKanaRe;
  const std::string afmoe_scripts =
      R"((?:(?!\s)[\x{4E00}-\x{9FFF}\x{3400}-\x{4DBF}\x{8C48}-\x{FAFF}\x{3040}-\x{309F}\x{30A0}-\x{30FF}\x{FF65}-\x{FF9F}\x{2F00}-\x{2FDF})"
      R"(\x{E40}-\x{E7F}\x{E80}-\x{EFF}\x{1780}-\x{17FF}\x{1000}-\x{109F}\x{AA60}-\x{AA7F}\x{A9E0}-\x{A9FF}\x{AC00}-\x{D7AF})"
      R"(\x{1100}-\x{11FF}])+)";
  const std::string n1 = R"(\p{N})", n3 = R"(\p{N}{1,3})", n = R"(\p{N}+)", bar = "|", line_runs = R"([^\n]+|[\n]+)";
  const std::string after_word = kContractionRe + "?";
  const std::string words_of = kContractionRe + bar + kWordRe + bar, ending = bar + kOtherRe + bar + kSpacesRe;
  const std::string published = kAnyCaseRe + bar + kWordRe + bar;
  const std::string slash_ending = bar + kOtherAndSlashesRe + bar + kSpacesRe;
  const std::string phrase_rest =
      R"(|[^\r\n\p{L}\p{N}]?(?:\p{L}\p{M}*(?: \p{L}\p{M}*)*)+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]?|\s*[\r\n]|\s+(?!\S)|\s+)";
  const std::u32string long_s = U"\u017F";  // to (?i:'s) it is an s, to llama.cpp it is not
  return {
      {"default", P::kDefault, {R"([\p{P}\$\+<=>\^~\|]+)", kGpt2Re, n, "[0-9][0-9][0-9]"}},
      {"llama-bpe", P::kLlama3, {words_of + n3 + ending}},
      {"llama-bpe, published", P::kLlama3, {published + n3 + ending}, long_s},
      {"jais-2", P::kJais2, {words_of + n3 + bar + kOtherRe + bar + kHalvingSpacesRe}},
      {"deepseek-llm",
       P::kDeepseekLlm,
       {"[\r\n]", kDeepseekLettersRe, R"(\s?[!-/:-~\x{FF01}-\x{FF0F}\x{FF1A}-\x{FF5E}\x{2018}-\x{201F}\x{3001}-\x{3002}]+)", R"(\s+\z)",
        kDeepseekCjkRe, n}},
      {"deepseek-coder", P::kDeepseekCoder, {"[\r\n]", R"(\s?\p{L}+)", R"(\s?\p{P}+)", kDeepseekCjkRe, n1}},
      {"deepseek-v3", P::kDeepseekV3, {n3, kHanAndKanaRe, kDeepseekV3Re}},
      {"spark2_5",
       P::kSpark,
       {n3, kHanAndKanaRe, kSignAndAsciiWordRe + R"(|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+|[\r\n]|\s+(?!\S)|\s+)", n1}},
      {"youtu", P::kYoutu, {cjk_runs, kWordWithMarksRe + after_word + bar + n1 + slash_ending}},
      {"falcon", P::kFalcon, {R"([\p{P}\$\+<=>\^~\|`]+)", kGpt2Re, "[0-9][0-9][0-9]"}},
      {"starcoder", P::kStarcoder, {n1, kGpt2Re}},
      {"gpt-2", P::kGpt2, {kGpt2Re}},
      {"qwen2", P::kQwen2, {words_of + n1 + ending}},
      {"qwen2, published", P::kQwen2, {published + n1 + ending}, long_s},
      {"bailingmoe, published",
       P::kQwen2,
       {R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+)"},
       long_s},
      {"qwen35", P::kQwen35, {kContractionRe + bar + kWordWithMarksRe + R"(|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|)" + kSpacesRe}},
      {"bloom", P::kBloom, {kBloomRe}},
      {"viking", P::kViking, {kBloomRe, n1}},
      {"tekken", P::kTekken, {cased(R"(\p{L})", "") + bar + n1 + slash_ending}},
      {"chameleon",
       P::kChameleon,
       {"<sentinel:[0-9]+>", "(IMGIMG)((A|B|C|D|E|F|G|H|I){1,4})Z", "([\t\n]|    |  )", n1, R"([\p{P}!-/:-@\[-`{-~])", kGpt2Re}},
      {"gpt-4o", P::kGpt4o, {cased(R"(\p{L})", after_word) + bar + n3 + slash_ending}},
      {"granite-embed-multi-97m", P::kGraniteMultilingual, {cased(R"(\p{L}\p{M})", after_word) + bar + n3 + slash_ending}},
      {"tiny_aya", P::kTinyAya, {kDigitGroupsRe, kWordWithMarksRe + after_word + bar + n3 + slash_ending}},
      {"kimi-k2", P::kKimiK2, {"[" + han + R"(]+|[^\r\n\p{L}\p{N}]?(?:(?![)" + han + R"(])\p{L})+)" + after_word + bar + n3 + ending}},
      {"superbpe", P::kSuperbpe, {n, "(?=([0-9]{3})+(?![0-9]))"}},
      {"seed-coder", P::kSeedCoder, {words_of + R"(\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|)" + kSpacesRe}},
      {"ufakzeka", P::kUfakzeka, {kWordRe + bar + n1 + ending}},
      {"afmoe", P::kAfmoe, {kDigitGroupsRe, afmoe_scripts, kDeepseekV3Re}},
      {"laguna", P::kLaguna, {line_runs, words_of + n1 + ending}},
      {"exaone-moe", P::kExaoneMoe, {kContractionRe + phrase_rest}},
      {"exaone-moe, published", P::kExaoneMoe, {kAnyCaseRe + phrase_rest}, long_s},
      {"gemma4", P::kGemma4, {line_runs}},
      {"minicpm5", P::kMinicpm5, {n3, words_of + n + ending}},
      {"whitespace", P::kWhitespace, {R"(\S+)"}},
  };
}

// --- random text ----------------------------------------------------------------------------------------------------------------------

/// Every code point that PCRE2's Unicode knows as assigned, private use aside; U+180E is left out for its \s.
std::vector<char32_t> assigned_code_points() {
  Expression unassigned(R"([\p{Cn}\p{Co}\x{180E}])");
  std::vector<char32_t> values;
  std::string text;
  for (char32_t value = 1; value <= 0x10FFFF; ++value) {
    if (value >= 0xD800 && value <= 0xDFFF) continue;
    text.clear();
    append_utf8(value, text);
    if (!unassigned.matches(text)) values.push_back(value);
  }
  return values;
}

class RandomText {
 public:
  RandomText(std::uint64_t seed, std::u32string avoid) : random_(seed), avoid_(std::move(avoid)) {}

  std::string next() {
    std::string text;
    const std::uint64_t mode = random_.below(5);
    for (std::uint64_t left = 1 + random_.below(24); left > 0; --left) {
      const char32_t c = pick(mode);
      if (avoid_.find(c) != std::u32string::npos) continue;
      for (std::uint64_t repeats = random_.below(6) ? 1 : 1 + random_.below(7); repeats > 0; --repeats) append_utf8(c, text);
      if (random_.below(100) == 0) text += kMarkers[random_.below(std::size(kMarkers))];
    }
    return text;
  }

 private:
  char32_t pick(std::uint64_t mode) {
    static const std::vector<char32_t> assigned = assigned_code_points();
    const bool any = mode == 4 || (mode == 3 && random_.below(2));
    if (any) return assigned[random_.below(assigned.size())];
    return mode == 2 && random_.below(3) ? kSpaceAndQuote[random_.below(kSpaceAndQuote.size())] : kTelling[random_.below(kTelling.size())];
  }

  /// The characters that the expressions name, and some of each class and script that one of them treats apart.
  static constexpr std::u32string_view kTelling =
      U"   \n\r\t\v\f\u0085\u00A0\u2028\u3000\u2003''sStTrReEvVlLmMdDaAzZbBIG01953.,!//-_$+<=>^~|`()[\\]{}?@&#%\":;*"
      U"\u0001\u007F\u200D\u017F\u212A\u00E9\u00C9\u00DF\u03B1\u0391\u0430\u0410\u0301\u0308\u093E\u094D\u0915\u0661\u0662\u00B2\u00BD"
      U"\u2160"
      U"\u4E2D\u6587\u3042\u30A2\uAC00\u3131\u3105\u2026\u201C\uFF01\uFF0C\u3001\u3002\u0964\u06D4\u060C\uF900\U00020000\U0001F600"
      U"\U0001F3FD"
      U"\uFE0F\u20E3\U0001F1E6\uE000\U000E0100\u01C5\u02B0\U0001D400\U000104B0\U00010400\u00AD\u200B\uFEFF\u0E40\u9FA5\u9FA6\uD7A4\u0800";
  static constexpr std::u32string_view kSpaceAndQuote = U"  \n\r\t'\v\u00A0/";
  static constexpr std::string_view kMarkers[] = {"IMGIMGABZ", "<sentinel:12>", "IMGIMGABCDEZ", "<sentinel:>", "it's", "I'LL"};

  Xoshiro256 random_;
  std::u32string avoid_;
};

std::string describe(const Pieces& pieces) {
  std::string text;
  for (const std::string_view piece : pieces) text += testing::PrintToString(std::string(piece)) + " ";
  return text;
}

Pieces split_by_expressions(std::string_view text, std::vector<Expression>& expressions) {
  Pieces pieces{text}, next;
  for (Expression& expression : expressions) {
    next.clear();
    for (const std::string_view piece : pieces) expression.split(piece, next);
    pieces.swap(next);
  }
  return pieces;
}

Pieces split_by_scanner(std::string_view text, PreTokenizer rules, std::vector<std::size_t>& ends) {
  ends.clear();
  pretokenize(rules, text, ends);
  Pieces pieces;
  std::size_t begin = 0;
  for (const std::size_t end : ends) {
    pieces.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return pieces;
}

/// 20,000 strings for each row; ten million in all where QUENCH_FULL is 1.
std::size_t strings_per_case(std::size_t rows) {
  const char* full = std::getenv("QUENCH_FULL");
  return full && std::string_view(full) == "1" ? 10'000'000 / rows + 1 : 20'000;
}

class SplitExpressions : public testing::TestWithParam<Case> {};

TEST_P(SplitExpressions, CutRandomTextAsTheScannerDoes) {
  const Case& row = GetParam();
  std::vector<Expression> expressions(row.expressions.begin(), row.expressions.end());
  std::uint64_t seed = 2024;
  for (const char c : row.name) seed = seed * 31 + static_cast<unsigned char>(c);
  RandomText random(seed, row.avoid);
  std::vector<std::size_t> ends;
  const std::size_t count = strings_per_case(cases().size());
  for (std::size_t i = 0; i < count; ++i) {
    const std::string text = random.next();
    const Pieces expected = split_by_expressions(text, expressions), got = split_by_scanner(text, row.rules, ends);
    ASSERT_EQ(got, expected) << row.name << ", string " << i << "\n  expressions " << describe(expected) << "\n  scanner     "
                             << describe(got);
  }
}

void PrintTo(const Case& row, std::ostream* out) { *out << row.name; }

std::string test_name(const testing::TestParamInfo<Case>& info) {
  std::string name;
  for (const char c : info.param.name) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Every, SplitExpressions, testing::ValuesIn(cases()), test_name);

TEST(SplitExpressionsOfAllRuleSets, ThereIsARowForEach) {
  std::vector<bool> tested(256);
  for (const Case& row : cases()) tested[static_cast<std::size_t>(row.rules)] = true;
  for (const std::string_view name : pretokenizer_names()) {
    EXPECT_TRUE(tested[static_cast<std::size_t>(*pretokenizer_from_name(name))]) << name;
  }
}

}  // namespace
}  // namespace quench
