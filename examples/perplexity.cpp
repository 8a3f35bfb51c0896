// How well a model predicts a text: its perplexity, and the token that surprised it most. usage: perplexity MODEL TEXT

#include <cmath>
#include <cstdio>
#include <quench/quench.hpp>

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: perplexity MODEL TEXT\n");
    return 2;
  }
  try {
    const auto model = quench::api::Model::load(argv[1]);
    const quench::api::Engine engine(model, {.context = 1024});
    const auto scores = engine.score(model.tokenize(argv[2], /*add_bos_eos=*/true), 1);
    if (scores.empty()) {
      std::fprintf(stderr, "perplexity: the text needs two tokens at least\n");
      return 2;
    }
    double sum = 0.0;
    const auto* worst = &scores.front();
    for (const auto& score : scores) {
      sum += score.chosen.log_probability;
      if (score.chosen.log_probability < worst->chosen.log_probability) worst = &score;
    }
    std::printf("perplexity %.3f over %zu tokens\n", std::exp(-sum / static_cast<double>(scores.size())), scores.size());
    std::printf("least expected: '%s', where '%s' was\n", worst->chosen.text.c_str(), worst->top.front().text.c_str());
  } catch (const quench::api::Error& error) {
    std::fprintf(stderr, "perplexity: %s\n", error.what());
    return 1;
  }
}
