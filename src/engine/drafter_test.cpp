#include "engine/drafter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string_view>

namespace quench {
namespace {

constexpr std::size_t kVocab = 256;

std::vector<Token> letters(std::string_view text) { return {text.begin(), text.end()}; }

std::string text_of(const Draft& draft) { return {draft.tokens.begin(), draft.tokens.end()}; }

ReferenceText reference(std::string_view text) {
  auto automaton = std::make_shared<SuffixAutomaton>();
  automaton->append(letters(text));
  return automaton;
}

/// 20 ms a step, and 1 ms for each row.
StepTimes machine(double row_seconds) {
  StepTimes times;
  for (int round = 0; round < 200; ++round) {
    for (std::size_t rows = 1; rows <= 64; rows *= 2) {
      times.observe({.rows = rows, .attended = 0.0}, 0.02 + row_seconds * static_cast<double>(rows));
    }
  }
  return times;
}

TEST(Drafter, ContinuesAsTheTextDidBefore) {
  SuccessorTable table(kVocab);
  Drafter drafter(table, {}, {}, 100);
  drafter.read(letters("one two three; one t"));
  const Draft draft = drafter.propose(4);
  EXPECT_EQ(draft.match_length, 5u);
  EXPECT_EQ(text_of(draft), "wo t");
}

TEST(Drafter, TheLongestMatchWinsAndTiesGoToTheConversation) {
  SuccessorTable table(kVocab);
  Drafter longer(table, {reference("xxone two FOUR")}, {}, 100);
  longer.read(letters("two five; one two "));
  EXPECT_EQ(text_of(longer.propose(4)), "FOUR");
  Drafter equal(table, {reference("-two FOUR")}, {}, 100);
  equal.read(letters("=two five; two "));
  EXPECT_EQ(text_of(equal.propose(4)), "five");
}

TEST(Drafter, AReferenceThatEndsThereSaysNothing) {
  SuccessorTable table(kVocab);
  Drafter drafter(table, {reference("abcdef")}, {}, 100);
  drafter.read(letters("zabcdef"));
  EXPECT_EQ(drafter.propose(4).match_length, 0u);
}

TEST(Drafter, WithoutAMatchTheTableGuesses) {
  SuccessorTable table(kVocab);
  Drafter teacher(table, {}, {}, 100);
  teacher.read(letters("qrst"));
  Drafter drafter(table, {}, {}, 100);
  EXPECT_TRUE(drafter.propose(4).tokens.empty());
  drafter.read(letters("q"));
  const Draft draft = drafter.propose(2);
  EXPECT_EQ(draft.match_length, 0u);
  EXPECT_EQ(text_of(draft), "rs");
}

TEST(Drafter, LearnsFromEveryTokenWhetherItsGuessesAreRight) {
  SuccessorTable table(kVocab);
  Drafter right(table, {}, {}, 1000);
  right.read(letters("abcdefghijklmnopqrstuvwxyzabc"));
  for (const Token token : letters("defghijklmnopqrstuvwxyz")) right.commit(token);
  EXPECT_GT(right.record().rate(10), DraftRecord().rate(10));
  Drafter wrong(table, {}, {}, 1000);
  wrong.read(letters("ab1"));
  for (int i = 0; i < 60; ++i) {
    wrong.commit('a');
    wrong.commit('b');
    wrong.commit(static_cast<Token>(100 + i));
  }
  EXPECT_LT(wrong.record().rate(2), 0.3);
}

TEST(WorthwhileDraft, WeighsChancesAgainstTheTimeOfTheStep) {
  const std::vector<Token> tokens(8, 1);
  const Draft draft{.match_length = 20, .tokens = tokens};
  DraftRecord sure;
  for (int i = 0; i < 200; ++i) sure.learn(20, true);
  const StepShape one{.rows = 1, .attended = 0.0};
  EXPECT_EQ(worthwhile_draft(draft, sure, machine(0.001), one, 1.0, 0), 8u);
  // Eight rows at a time that cost as much as eight steps.
  EXPECT_EQ(worthwhile_draft(draft, sure, machine(1.0), one, 1.0, 0), 0u);
  DraftRecord unsure;
  for (int i = 0; i < 200; ++i) unsure.learn(20, i % 10 == 0);
  EXPECT_EQ(worthwhile_draft(draft, unsure, machine(0.004), one, 1.0, 0), 0u);
  EXPECT_EQ(worthwhile_draft(draft, sure, StepTimes(), one, 1.0, 0), 0u);
  EXPECT_EQ(worthwhile_draft({}, sure, machine(0.001), one, 1.0, 0), 0u);
}

TEST(WorthwhileDraft, ManyAnswersSideBySideLeaveLessRoom) {
  const std::vector<Token> tokens(8, 1);
  const Draft draft{.match_length = 20, .tokens = tokens};
  DraftRecord record;
  for (int i = 0; i < 40; ++i) record.learn(20, i % 4 != 0);
  const auto alone = worthwhile_draft(draft, record, machine(0.003), {.rows = 1, .attended = 0.0}, 1.0, 0);
  const auto beside = worthwhile_draft(draft, record, machine(0.003), {.rows = 32, .attended = 0.0}, 32.0, 0);
  EXPECT_GT(alone, beside);
}

}  // namespace
}  // namespace quench
