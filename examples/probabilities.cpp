// What a model thinks comes next: each token that it draws, and the most probable ones. usage: probabilities MODEL TEXT

#include <cmath>
#include <cstdio>
#include <quench/quench.hpp>

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: probabilities MODEL TEXT\n");
    return 2;
  }
  try {
    const auto model = quench::api::Model::load(argv[1]);
    const quench::api::Engine engine(model, {.context = 1024});
    quench::api::Request request;
    request.prompt = argv[2];
    request.max_tokens = 8;
    request.sampling.temperature = 0.0;
    request.top_log_probabilities = 3;
    auto stream = engine.submit(request);
    while (const auto event = stream.next()) {
      if (!event->log_probabilities) continue;
      for (const auto& one : event->log_probabilities->top) {
        std::printf("%6.2f %% '%s'  ", 100.0 * std::exp(one.log_probability), one.text.c_str());
      }
      std::printf("\n");
    }
    (void)stream.finish();  // throws where the answer failed
  } catch (const quench::api::Error& error) {
    std::fprintf(stderr, "probabilities: %s\n", error.what());
    return 1;
  }
}
