// Continues several texts at once: one pass over the weights serves all of them. usage: side_by_side MODEL TEXT...

#include <iostream>
#include <quench/quench.hpp>
#include <vector>

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: side_by_side MODEL TEXT...\n";
    return 2;
  }
  try {
    const auto model = quench::api::Model::load(argv[1]);
    const quench::api::Engine engine(model, {.context = 1024});
    std::vector<quench::api::Stream> streams;
    for (int i = 2; i < argc; ++i) {
      quench::api::Request request;
      request.prompt = argv[i];
      request.max_tokens = 24;
      request.sampling.temperature = 0.0;
      request.echo = true;
      streams.push_back(engine.submit(request));
    }
    for (auto& stream : streams) {
      for (const auto& answer : stream.finish()) std::cout << answer.text << "\n\n";
    }
    const auto stats = engine.stats();
    std::cerr << stats.prompt_tokens << " prompt tokens, " << stats.cached_tokens << " of them computed before\n";
  } catch (const quench::api::Error& error) {
    std::cerr << "side_by_side: " << error.what() << '\n';
    return 1;
  }
}
