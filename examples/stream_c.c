/* Two answers to one prompt, event by event. usage: stream_c MODEL TEXT */

#include <quench/quench.h>
#include <stdio.h>

static int fail(void) {
  fprintf(stderr, "stream_c: %s\n", quench_last_error());
  return 1;
}

static int run(quench_engine* engine, const char* text) {
  quench_stream* stream = NULL;
  quench_request request;
  quench_sampling sampling;
  quench_event event = {.struct_size = sizeof event};
  quench_answer answer = {.struct_size = sizeof answer};
  quench_status status;
  size_t i;

  quench_sampling_init(&sampling);
  sampling.temperature = 0.8;
  sampling.has_seed = 1;
  sampling.seed = 1;
  quench_request_init(&request);
  request.prompt = text;
  request.max_tokens = 16;
  request.n_answers = 2;
  request.sampling = &sampling;
  if (quench_engine_submit(engine, &request, &stream) != QUENCH_OK) return fail();
  while ((status = quench_stream_next(stream, &event)) == QUENCH_OK) {
    if (event.kind == QUENCH_EVENT_TOKEN) fprintf(stderr, "answer %zu: '%s'\n", event.answer, event.text);
  }
  for (i = 0; i < 2 && (status == QUENCH_END || status == QUENCH_OK); ++i) {
    status = quench_stream_answer(stream, i, &answer);
    if (status == QUENCH_OK) printf("%zu tokens: %s\n", answer.n_tokens, answer.text);
  }
  quench_stream_free(stream);
  return status == QUENCH_OK ? 0 : fail();
}

int main(int argc, char** argv) {
  quench_model* model = NULL;
  quench_engine* engine = NULL;
  quench_engine_options options;
  int result = 1;

  if (argc != 3) {
    fprintf(stderr, "usage: stream_c MODEL TEXT\n");
    return 2;
  }
  quench_engine_options_init(&options);
  options.context = 1024;
  if (quench_model_load(argv[1], NULL, &model) == QUENCH_OK && quench_engine_new(model, &options, &engine) == QUENCH_OK) {
    result = run(engine, argv[2]);
  } else {
    fail();
  }
  quench_engine_free(engine);
  quench_model_free(model);
  return result;
}
