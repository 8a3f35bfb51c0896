#pragma once

#include <concepts>
#include <cstddef>
#include <type_traits>

namespace quench {

// What an index of a tensor counts. Axes live in types only: two tensors of equal sizes and different axes do not mix.
struct Seq {};         ///< tokens of the step, in order
struct Embed {};       ///< channels of the residual stream
struct Heads {};       ///< query heads
struct KvHeads {};     ///< key and value heads
struct HeadDim {};     ///< channels of one head
struct Ffn {};         ///< hidden channels of the feed-forward block
struct Vocab {};       ///< token ids
struct Experts {};     ///< routed experts of a layer
struct ExpertFfn {};   ///< hidden channels of one expert
struct SharedGate {};  ///< the one number that scales the shared expert

/// Several axes flattened into one, the first one outermost: a projection's output before it is split into heads.
template <class... Parts>
struct Axes {};

using QueryChannels = Axes<Heads, HeadDim>;
using KvChannels = Axes<KvHeads, HeadDim>;

namespace axes_detail {

template <class Axis, class... List>
struct IndexOf;
template <class Axis, class... Rest>
struct IndexOf<Axis, Axis, Rest...> : std::integral_constant<std::size_t, 0> {};
template <class Axis, class First, class... Rest>
struct IndexOf<Axis, First, Rest...> : std::integral_constant<std::size_t, 1 + IndexOf<Axis, Rest...>::value> {};
template <class Axis>
struct IndexOf<Axis> : std::integral_constant<std::size_t, 0> {};

}  // namespace axes_detail

template <class Axis, class... List>
inline constexpr bool kHasAxis = (std::same_as<Axis, List> || ...);

/// Place of `Axis` in the list, which has it.
template <class Axis, class... List>
inline constexpr std::size_t kAxisIndex = axes_detail::IndexOf<Axis, List...>::value;

}  // namespace quench
