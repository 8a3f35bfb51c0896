#include "text/pretokenizer.h"

#include <algorithm>
#include <iterator>

#include "text/pretokenizer_isolate.h"
#include "text/pretokenizer_scan.h"
#include "text/pretokenizer_words.h"

namespace quench {
namespace {

// --- what the rule sets are made of ---------------------------------------------------------------------------------------------------

constexpr CharSet all_but(CharSet set) { return static_cast<CharSet>(~set); }

constexpr WordRules kGpt2Words{.contraction = Contraction::kLower,
                               .prefix = 0,
                               .numbers = WordRules::kAnyNumber,
                               .tail = Tail::kNone,
                               .newlines = Newlines::kLikeBlanks};
constexpr WordRules kQwen2Words{};
constexpr WordRules kQwen35Words{.letters = kLetter | kMark, .other = all_but(kSpace | kLetter | kMark | kNumber)};
constexpr WordRules kLlama3Words{.numbers = 3};
constexpr WordRules kJais2Words{.numbers = 3, .halving_blanks = true};
constexpr WordRules kMinicpm5Words{.numbers = WordRules::kAnyNumber};
constexpr WordRules kSeedCoderWords{.tail = Tail::kNone};
constexpr WordRules kUfakzekaWords{.contraction = Contraction::kNone};
constexpr WordRules kExaoneMoeWords{.word = WordForm::kPhrase, .tail = Tail::kOneNewlineOrSlash};
constexpr WordRules kTekkenWords{.contraction = Contraction::kNone, .word = WordForm::kCased, .tail = Tail::kNewlinesAndSlashes};
constexpr WordRules kGpt4oWords{
    .contraction = Contraction::kAfterWord, .word = WordForm::kCased, .numbers = 3, .tail = Tail::kNewlinesAndSlashes};
constexpr WordRules kGraniteWords{.contraction = Contraction::kAfterWord,
                                  .word = WordForm::kCased,
                                  .letters = kLetter | kMark,
                                  .numbers = 3,
                                  .tail = Tail::kNewlinesAndSlashes};
constexpr WordRules kTinyAyaWords{
    .contraction = Contraction::kAfterWord, .letters = kLetter | kMark, .numbers = 3, .tail = Tail::kNewlinesAndSlashes};
constexpr WordRules kYoutuWords{.contraction = Contraction::kAfterWord, .letters = kLetter | kMark, .tail = Tail::kNewlinesAndSlashes};
constexpr WordRules kKimiWords{.contraction = Contraction::kAfterWord, .word = WordForm::kNotHan, .numbers = 3};
constexpr WordRules kDeepseekV3Words{.contraction = Contraction::kNone,
                                     .sign_and_ascii_word = true,
                                     .letters = kLetter | kMark,
                                     .prefix = all_but(kNewline | kLetter | kPunctuation | kSymbol),
                                     .numbers = 0,
                                     .other = kPunctuation | kSymbol};
constexpr WordRules kSparkWords{.contraction = Contraction::kNone,
                                .sign_and_ascii_word = true,
                                .letters = kLetter | kMark,
                                .prefix = all_but(kNewline | kLetter | kPunctuation | kSymbol),
                                .numbers = 0,
                                .other = kPunctuation | kSymbol,
                                .tail = Tail::kNone,
                                .newlines = Newlines::kSingle};

using Gpt2 = Words<kGpt2Words>;
template <std::size_t most>
using Numbers = Isolate<Run<ClassOr<kNumber>, 1, most>>;
template <AsciiList signs>
using Punctuation = Isolate<Run<ClassOr<kPunctuation, signs>>>;
using AsciiDigitTriples = Isolate<Run<AsciiDigit, 3, 3>>;
using NewlineRuns = Isolate<Run<LineFeed>>;
using EachNewline = Isolate<Run<ClassOr<kNewline>, 1, 1>>;

// --- lists of code points -------------------------------------------------------------------------------------------------------------

constexpr CodeRange kHanAndKana[] = {{0x3040, 0x30FF}, {0x4E00, 0x9FA5}};
/// DeepSeek's "CJK": the range from U+0800 covers most of the BMP's other scripts and signs as well.
constexpr CodeRange kDeepseekCjk[] = {{0x0800, 0x9FA5}, {0xAC00, 0xD7FF}};
constexpr CodeRange kDeepseekSigns[] = {{'!', '/'}, {':', '~'}, {0x2018, 0x201F}, {0x3001, 0x3002}, {0xFF01, 0xFF0F}, {0xFF1A, 0xFF5E}};
/// DeepSeek's "letters": those with case, as of an older Unicode.
constexpr CodeRange kDeepseekLetters[] = {
    {'A', 'Z'},         {'a', 'z'},         {0x00B5, 0x00B5},   {0x00C0, 0x00D6},   {0x00D8, 0x00F6},   {0x00F8, 0x01BA},
    {0x01BC, 0x01BF},   {0x01C4, 0x0293},   {0x0295, 0x02AF},   {0x0370, 0x0373},   {0x0376, 0x0377},   {0x037B, 0x037D},
    {0x037F, 0x037F},   {0x0386, 0x0386},   {0x0388, 0x038A},   {0x038C, 0x038C},   {0x038E, 0x03A1},   {0x03A3, 0x03F5},
    {0x03F7, 0x0481},   {0x048A, 0x052F},   {0x0531, 0x0556},   {0x10A0, 0x10C5},   {0x13A0, 0x13F5},   {0x13F8, 0x13FD},
    {0x1C90, 0x1CBA},   {0x1CBD, 0x1CBF},   {0x1D00, 0x1D2B},   {0x1D6B, 0x1D77},   {0x1D79, 0x1D9A},   {0x1E00, 0x1F15},
    {0x1F18, 0x1F1D},   {0x1F20, 0x1F45},   {0x1F48, 0x1F4D},   {0x1F50, 0x1F57},   {0x1F59, 0x1F59},   {0x1F5B, 0x1F5B},
    {0x1F5D, 0x1F5D},   {0x1F5F, 0x1F7D},   {0x1F80, 0x1FB4},   {0x1FB6, 0x1FBC},   {0x1FBE, 0x1FBE},   {0x1FC2, 0x1FC4},
    {0x1FC6, 0x1FCC},   {0x1FD0, 0x1FD3},   {0x1FD6, 0x1FDB},   {0x1FE0, 0x1FEC},   {0x1FF2, 0x1FF4},   {0x1FF6, 0x1FFC},
    {0x2102, 0x2102},   {0x2107, 0x2107},   {0x210A, 0x2113},   {0x2115, 0x2115},   {0x2119, 0x211D},   {0x2124, 0x2124},
    {0x2126, 0x2126},   {0x2128, 0x2128},   {0x212A, 0x212D},   {0x212F, 0x2134},   {0x2139, 0x2139},   {0x213C, 0x213F},
    {0x2145, 0x2149},   {0x214E, 0x214E},   {0x2183, 0x2184},   {0x2C00, 0x2C7B},   {0x2C7E, 0x2CE4},   {0x2CEB, 0x2CEE},
    {0x2CF2, 0x2CF3},   {0xA640, 0xA66D},   {0xA680, 0xA69B},   {0xA722, 0xA76F},   {0xA771, 0xA787},   {0xA78B, 0xA78E},
    {0xAB70, 0xABBF},   {0xFB00, 0xFB06},   {0xFB13, 0xFB17},   {0xFF21, 0xFF3A},   {0xFF41, 0xFF5A},   {0x10400, 0x1044F},
    {0x104B0, 0x104D3}, {0x104D8, 0x104FB}, {0x10C80, 0x10CB2}, {0x10CC0, 0x10CF2}, {0x118A0, 0x118DF}, {0x1E900, 0x1E943}};
constexpr CodeRange kHangul[] = {{0x3131, 0x318E}, {0xAC00, 0xD7A3}};
constexpr CodeRange kBopomofo[] = {{0x3105, 0x312F}};
constexpr CodeRange kCjkSigns[] = {{0x2014, 0x2014}, {0x2018, 0x2019}, {0x201C, 0x201D}, {0x2026, 0x2026}, {0x3001, 0x303F},
                                   {0xFE30, 0xFE4F}, {0xFF01, 0xFF01}, {0xFF0C, 0xFF0C}, {0xFF1A, 0xFF1B}};
/// Thai from U+0E40, Lao, Myanmar, Khmer, Hangul, Han, Kana. The range that was to hold the compatibility ideographs begins at U+8C48
/// in llama.cpp's source (their first, normalized), so everything up to U+FAFF is in it.
constexpr CodeRange kAfmoeScripts[] = {{0x0E40, 0x0EFF}, {0x1000, 0x109F}, {0x1100, 0x11FF}, {0x1780, 0x17FF}, {0x2F00, 0x2FDF},
                                       {0x3040, 0x30FF}, {0x3400, 0x4DBF}, {0x4E00, 0xFAFF}, {0xFF65, 0xFF9F}};
/// What ends a word of bloom's: its signs, and ( and | because they stand inside the brackets of its expression.
constexpr CodeRange kBloomStops[] = {{'!', '!'},       {'(', ')'},       {',', ','},       {'.', '.'},
                                     {'?', '?'},       {'|', '|'},       {0x060C, 0x060C}, {0x06D4, 0x06D4},
                                     {0x0964, 0x0964}, {0x2026, 0x2026}, {0x3001, 0x3002}, {0xFF0C, 0xFF0C}};

template <const auto& ranges, Lead lead = Lead::kNothing>
using RangeRun = Run<InRanges<ranges>, 1, kNoLimit, lead>;
using BloomWords = Isolate<Run<NotSpaceNorIn<kBloomStops>, 1, kNoLimit, Lead::kPlainSpace>>;

// --- chameleon's markers ------------------------------------------------------------------------------------------------------------

bool starts_with(ScanText text, std::size_t pos, std::string_view literal) {
  return text.end - pos >= literal.size() && std::equal(literal.begin(), literal.end(), text.bytes + pos,
                                                        [](char a, unsigned char b) { return static_cast<unsigned char>(a) == b; });
}

/// <sentinel:DIGITS>
struct Sentinel {
  static constexpr bool may_start(CodePoint c) noexcept { return c.value == '<'; }
  static std::size_t match(ScanText text, std::size_t pos, CodePoint) noexcept {
    constexpr std::string_view kOpening = "<sentinel:";
    if (!starts_with(text, pos, kOpening)) return pos;
    std::size_t at = pos + kOpening.size();
    const std::size_t digits = at;
    while (is_ascii_digit(text.byte(at))) ++at;
    return at > digits && text.byte(at) == '>' ? at + 1 : pos;
  }
};

/// IMGIMG, one to four of A to I, Z
struct ImageToken {
  static constexpr bool may_start(CodePoint c) noexcept { return c.value == 'I'; }
  static std::size_t match(ScanText text, std::size_t pos, CodePoint) noexcept {
    constexpr std::string_view kOpening = "IMGIMG";
    if (!starts_with(text, pos, kOpening)) return pos;
    std::size_t at = pos + kOpening.size();
    const std::size_t letters = at;
    while (at - letters < 4 && text.byte(at) >= 'A' && text.byte(at) <= 'I') ++at;
    return at > letters && text.byte(at) == 'Z' ? at + 1 : pos;
  }
};

/// A tab, a line feed, four spaces, or two
struct Indentation {
  static constexpr bool may_start(CodePoint c) noexcept { return c.value == '\t' || c.value == '\n' || c.value == ' '; }
  static std::size_t match(ScanText text, std::size_t pos, CodePoint c) noexcept {
    if (c.value == '\t' || c.value == '\n') return pos + 1;
    if (starts_with(text, pos, "    ")) return pos + 4;
    return starts_with(text, pos, "  ") ? pos + 2 : pos;
  }
};

// --- the rule sets, in the order of PreTokenizer -----------------------------------------------------------------------------------------

using Cut = void (*)(ScanText, std::vector<std::size_t>&);

template <class... Each>
void cut(ScanText text, std::vector<std::size_t>& ends) {
  Passes<Each...>::run(text, 0, [&ends](std::size_t, std::size_t end) { ends.push_back(end); });
}

struct RuleSet {
  PreTokenizer id;
  std::string_view name;
  Cut cut;
};

constexpr RuleSet kRuleSets[] = {
    {PreTokenizer::kDefault, "default", cut<Punctuation<"$+<=>^~|">, Gpt2, Numbers<kNoLimit>, AsciiDigitTriples>},
    {PreTokenizer::kLlama3, "llama-bpe", cut<Words<kLlama3Words>>},
    {PreTokenizer::kJais2, "jais-2", cut<Words<kJais2Words>>},
    {PreTokenizer::kDeepseekLlm, "deepseek-llm",
     cut<EachNewline, Isolate<RangeRun<kDeepseekLetters, Lead::kAnySpace>>, Isolate<RangeRun<kDeepseekSigns, Lead::kAnySpace>>,
         IsolateTrailingSpace, Isolate<RangeRun<kDeepseekCjk>>, Numbers<kNoLimit>>},
    {PreTokenizer::kDeepseekCoder, "deepseek-coder",
     cut<EachNewline, Isolate<Run<ClassOr<kLetter>, 1, kNoLimit, Lead::kAnySpace>>,
         Isolate<Run<ClassOr<kPunctuation>, 1, kNoLimit, Lead::kAnySpace>>, Isolate<RangeRun<kDeepseekCjk>>, Numbers<1>>},
    {PreTokenizer::kDeepseekV3, "deepseek-v3", cut<Numbers<3>, Isolate<RangeRun<kHanAndKana>>, Words<kDeepseekV3Words>>},
    {PreTokenizer::kSpark, "spark2_5", cut<Numbers<3>, Isolate<RangeRun<kHanAndKana>>, Words<kSparkWords>, Numbers<1>>},
    {PreTokenizer::kYoutu, "youtu",
     cut<Isolate<FirstOf<RangeRun<kHangul>, RangeRun<kCjkSigns>, RangeRun<kBopomofo>, RangeRun<kHanAndKana>>>, Words<kYoutuWords>>},
    {PreTokenizer::kFalcon, "falcon", cut<Punctuation<"$+<=>^~|`">, Gpt2, AsciiDigitTriples>},
    {PreTokenizer::kStarcoder, "starcoder", cut<Numbers<1>, Gpt2>},
    {PreTokenizer::kGpt2, "gpt-2", cut<Gpt2>},
    {PreTokenizer::kQwen2, "qwen2", cut<Words<kQwen2Words>>},
    {PreTokenizer::kQwen35, "qwen35", cut<Words<kQwen35Words>>},
    {PreTokenizer::kBloom, "bloom", cut<BloomWords>},
    {PreTokenizer::kViking, "viking", cut<BloomWords, Numbers<1>>},
    {PreTokenizer::kTekken, "tekken", cut<Words<kTekkenWords>>},
    {PreTokenizer::kChameleon, "chameleon",
     cut<Isolate<Sentinel>, Isolate<ImageToken>, Isolate<Indentation>, Numbers<1>, Isolate<Run<PunctuationOrAsciiSign, 1, 1>>, Gpt2>},
    {PreTokenizer::kGpt4o, "gpt-4o", cut<Words<kGpt4oWords>>},
    {PreTokenizer::kGraniteMultilingual, "granite-embed-multi-97m", cut<Words<kGraniteWords>>},
    {PreTokenizer::kTinyAya, "tiny_aya", cut<DigitGroupsAfterText, Words<kTinyAyaWords>>},
    {PreTokenizer::kKimiK2, "kimi-k2", cut<Words<kKimiWords>>},
    {PreTokenizer::kSuperbpe, "superbpe", cut<Numbers<kNoLimit>, AsciiDigitGroups>},
    {PreTokenizer::kSeedCoder, "seed-coder", cut<Words<kSeedCoderWords>>},
    {PreTokenizer::kUfakzeka, "ufakzeka", cut<Words<kUfakzekaWords>>},
    {PreTokenizer::kAfmoe, "afmoe", cut<DigitGroupsAfterText, Isolate<RangeRun<kAfmoeScripts>>, Words<kDeepseekV3Words>>},
    {PreTokenizer::kLaguna, "laguna", cut<NewlineRuns, Words<kQwen2Words>>},
    {PreTokenizer::kExaoneMoe, "exaone-moe", cut<Words<kExaoneMoeWords>>},
    {PreTokenizer::kGemma4, "gemma4", cut<NewlineRuns>},
    {PreTokenizer::kMinicpm5, "minicpm5", cut<Numbers<3>, Words<kMinicpm5Words>>},
    {PreTokenizer::kWhitespace, "whitespace", cut<Isolate<Run<ClassOr<all_but(kSpace)>>>>},
};
static_assert([] {
  for (std::size_t i = 0; i < std::size(kRuleSets); ++i) {
    if (static_cast<std::size_t>(kRuleSets[i].id) != i) return false;
  }
  return true;
}());

const RuleSet& rule_set(PreTokenizer pre) noexcept { return kRuleSets[static_cast<std::size_t>(pre)]; }

}  // namespace

std::string_view pretokenizer_name(PreTokenizer pre) noexcept { return rule_set(pre).name; }

void pretokenize(PreTokenizer pre, std::string_view text, std::vector<std::size_t>& ends) {
  rule_set(pre).cut({reinterpret_cast<const unsigned char*>(text.data()), text.size()}, ends);
}

}  // namespace quench
