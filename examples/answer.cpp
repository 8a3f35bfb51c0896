// Answers one message, word by word. usage: answer MODEL MESSAGE

#include <iostream>
#include <quench/quench.hpp>

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: answer MODEL MESSAGE\n";
    return 2;
  }
  try {
    const auto model = quench::api::Model::load(argv[1]);
    const quench::api::Engine engine(model, {.context = 1024});
    quench::api::ConversationOptions options;
    options.sampling.temperature = 0.0;
    quench::api::Conversation conversation(engine, options);
    conversation.send(argv[2], [](std::string_view text) {
      std::cout << text << std::flush;
      return true;
    });
    std::cout << '\n';
  } catch (const quench::api::Error& error) {
    std::cerr << "answer: " << error.what() << '\n';
    return 1;
  }
}
