#pragma once

#include <cstddef>
#include <type_traits>

namespace quench::generic {

template <class Chunks>
struct ChunkPair {
  static constexpr int kInstructions = Chunks::kInstructions;
  Chunks first;
  Chunks second;
  template <int kChunk>
  [[gnu::always_inline]] auto get(int s) const noexcept {
    return s == 0 ? first.template get<kChunk>(0) : second.template get<kChunk>(0);
  }
};

/// The same block of two tiles, where a register holds the rows of one: register s is tile s.
template <class View>
struct TilePair : View {
  using One = View;
  View second;

  TilePair(const View& of_first, const View& of_second) noexcept : View(of_first), second(of_second) {}

  auto scale(int s) const noexcept { return of(s).scale(0); }
  auto min(int s) const noexcept { return of(s).min(0); }
  auto scale_pair(std::size_t p, int s) const noexcept { return of(s).scale_pair(p, 0); }
  auto min_pair(std::size_t p, int s) const noexcept { return of(s).min_pair(p, 0); }
  auto chunks() const noexcept { return ChunkPair{View::chunks(), second.chunks()}; }
  auto even_chunks(std::size_t p) const noexcept { return ChunkPair{View::even_chunks(p), second.even_chunks(p)}; }
  auto odd_chunks(std::size_t p) const noexcept { return ChunkPair{View::odd_chunks(p), second.odd_chunks(p)}; }

 private:
  [[gnu::always_inline]] const View& of(int s) const noexcept { return s == 0 ? *this : second; }
};

template <class View>
inline constexpr bool kIsTilePair = requires { typename View::One; };

}  // namespace quench::generic
