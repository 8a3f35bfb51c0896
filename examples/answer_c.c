/* Answers one message, word by word. usage: answer_c MODEL MESSAGE */

#include <quench/quench.h>
#include <stdio.h>

static int print_text(const char* text, size_t text_bytes, void* user) {
  (void)user;
  fwrite(text, 1, text_bytes, stdout);
  fflush(stdout);
  return 1;
}

int main(int argc, char** argv) {
  quench_model* model = NULL;
  quench_engine* engine = NULL;
  quench_conversation* conversation = NULL;
  quench_engine_options engine_options;
  quench_conversation_options options;
  quench_sampling sampling;
  quench_status status;

  if (argc != 3) {
    fprintf(stderr, "usage: answer_c MODEL MESSAGE\n");
    return 2;
  }
  quench_engine_options_init(&engine_options);
  engine_options.context = 1024;
  quench_sampling_init(&sampling);
  sampling.temperature = 0.0;
  quench_conversation_options_init(&options);
  options.sampling = &sampling;

  status = quench_model_load(argv[1], NULL, &model);
  if (status == QUENCH_OK) status = quench_engine_new(model, &engine_options, &engine);
  if (status == QUENCH_OK) status = quench_conversation_new(engine, &options, &conversation);
  if (status == QUENCH_OK) status = quench_conversation_send(conversation, argv[2], print_text, NULL, NULL);
  if (status == QUENCH_OK) {
    printf("\n");
  } else {
    fprintf(stderr, "answer_c: %s\n", quench_last_error());
  }
  quench_conversation_free(conversation);
  quench_engine_free(engine);
  quench_model_free(model);
  return status == QUENCH_OK ? 0 : 1;
}
