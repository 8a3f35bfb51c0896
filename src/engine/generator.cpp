#include "engine/generator.h"

#include <chrono>
#include <optional>
#include <utility>

#include "engine/answer_stream.h"

namespace quench {
namespace {

/// How often somebody who may cancel is asked.
constexpr std::chrono::milliseconds kCancelPoll{20};

void tell(const GenerationHooks& hooks, const AnswerEvent& event) {
  if (event.kind == AnswerEvent::Kind::kPrefill && hooks.on_prefill) hooks.on_prefill(event.done, event.total);
  if (event.kind == AnswerEvent::Kind::kToken && hooks.on_token) hooks.on_token(event.token);
  if (!event.text.empty() && hooks.on_text) hooks.on_text(event.text);
}

}  // namespace

GenerationResult SharedGenerator::generate(const Tokenizer& tokenizer, Sampler& sampler, std::span<const Token> prompt,
                                           const GenerationOptions& options, const GenerationHooks& hooks) {
  StreamRequest request;
  request.prompt.assign(prompt.begin(), prompt.end());
  request.samplers.push_back(std::move(sampler));
  request.options = options;
  AnswerStream stream(engine_, tokenizer, std::move(request));
  bool cancelled = false;
  while (!stream.done()) {
    const auto event = hooks.cancel == nullptr ? stream.next() : stream.next_within(kCancelPoll);
    if (event) tell(hooks, *event);
    if (!cancelled && hooks.cancel != nullptr && hooks.cancel->load(std::memory_order_relaxed)) {
      stream.cancel();
      cancelled = true;
    }
  }
  sampler = stream.take_sampler();
  GenerationResult result = stream.take();
  // The engine may have been done before it heard of it.
  if (cancelled) result.finish = FinishReason::kCancelled;
  return result;
}

}  // namespace quench
