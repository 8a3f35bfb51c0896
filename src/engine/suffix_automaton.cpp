#include "engine/suffix_automaton.h"

#include <algorithm>
#include <bit>

#include "base/error.h"

namespace quench {
namespace {

constexpr std::size_t kMostTokens = std::size_t{1} << 29;
constexpr std::size_t kFewestSlots = 64;

}  // namespace

SuffixAutomaton::SuffixAutomaton(std::size_t tokens) {
  tokens_.reserve(tokens);
  states_.reserve(2 * tokens + 1);
  edges_.reserve(3 * tokens + 1);
  states_.emplace_back();
  rehash(std::bit_ceil(std::max(kFewestSlots, 6 * tokens)));
}

std::size_t SuffixAutomaton::slot_of(std::uint32_t state, Token token) const noexcept {
  const std::uint64_t key = (std::uint64_t{state} << 32 | token) * 0x9E3779B97F4A7C15u;
  return (key >> 32) & (slots_.size() - 1);
}

std::uint32_t SuffixAutomaton::find_edge(std::uint32_t state, Token token) const noexcept {
  for (std::size_t slot = slot_of(state, token); slots_[slot] != kNone; slot = (slot + 1) & (slots_.size() - 1)) {
    const Edge& edge = edges_[slots_[slot]];
    if (edge.from == state && edge.token == token) return slots_[slot];
  }
  return kNone;
}

void SuffixAutomaton::rehash(std::size_t slots) {
  slots_.assign(slots, kNone);
  for (std::uint32_t index = 0; index < edges_.size(); ++index) {
    std::size_t slot = slot_of(edges_[index].from, edges_[index].token);
    while (slots_[slot] != kNone) slot = (slot + 1) & (slots - 1);
    slots_[slot] = index;
  }
}

void SuffixAutomaton::add_edge(std::uint32_t state, Token token, std::uint32_t to) {
  if (2 * (edges_.size() + 1) > slots_.size()) rehash(2 * slots_.size());
  const auto index = static_cast<std::uint32_t>(edges_.size());
  edges_.push_back({.token = token, .from = state, .to = to, .next = states_[state].first_edge});
  states_[state].first_edge = index;
  std::size_t slot = slot_of(state, token);
  while (slots_[slot] != kNone) slot = (slot + 1) & (slots_.size() - 1);
  slots_[slot] = index;
}

/// The substrings of `target` that `state` reaches by `token` get a state of their own, because they now end where its longer ones do not.
std::uint32_t SuffixAutomaton::split(std::uint32_t state, std::uint32_t target, Token token) {
  const auto copy = static_cast<std::uint32_t>(states_.size());
  states_.push_back({.length = states_[state].length + 1, .link = states_[target].link, .end = states_[target].end});
  for (std::uint32_t edge = states_[target].first_edge; edge != kNone; edge = edges_[edge].next) {
    add_edge(copy, edges_[edge].token, edges_[edge].to);
  }
  states_[target].link = copy;
  for (; state != kNone; state = states_[state].link) {
    const std::uint32_t edge = find_edge(state, token);
    if (edge == kNone || edges_[edge].to != target) break;
    edges_[edge].to = copy;
  }
  return copy;
}

void SuffixAutomaton::append(Token token) {
  if (tokens_.size() >= kMostTokens) throw_bad_request("speculation: the text has more than 2^29 tokens");
  tokens_.push_back(token);
  const auto end = static_cast<std::uint32_t>(tokens_.size());
  const auto added = static_cast<std::uint32_t>(states_.size());
  states_.push_back({.length = states_[last_].length + 1, .end = end});
  std::uint32_t state = last_;
  std::uint32_t edge = kNone;
  for (; state != kNone && (edge = find_edge(state, token)) == kNone; state = states_[state].link) add_edge(state, token, added);
  std::uint32_t link = 0;
  if (state != kNone) {
    link = edges_[edge].to;
    if (states_[link].length != states_[state].length + 1) link = split(state, link, token);
  }
  states_[added].link = link;
  last_ = added;
  repeated_ = {.length = states_[link].length, .next = states_[link].end};
  states_[link].end = end;
}

void SuffixAutomaton::advance(Cursor& cursor, Token token) const noexcept {
  std::uint32_t edge = find_edge(cursor.state, token);
  while (edge == kNone && cursor.state != 0) {
    cursor.state = states_[cursor.state].link;
    cursor.length = states_[cursor.state].length;
    edge = find_edge(cursor.state, token);
  }
  if (edge == kNone) {
    cursor = {};
    return;
  }
  cursor.state = edges_[edge].to;
  cursor.length += 1;
}

SuffixMatch SuffixAutomaton::match(const Cursor& cursor) const noexcept {
  return {.length = cursor.length, .next = states_[cursor.state].end};
}

}  // namespace quench
