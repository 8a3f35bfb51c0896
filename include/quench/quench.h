#ifndef QUENCH_QUENCH_H
#define QUENCH_QUENCH_H

/* quench as a C library, over quench.hpp: the same handles, options and meaning (docs/library.md).

   - Handles are opaque. Each is freed with its own function, in any order: what one stands on lives as long as it does. Freeing NULL does
   nothing.
   - Structs begin with struct_size. Fill them with their _init function, which sets it and the defaults; a program that was built with an
   older header then runs with a newer library.
   - A NULL handle is refused; functions without a status give 0 or NULL for it, or do nothing. A function that makes a handle sets it to
   NULL when it fails.
   - Functions that can fail return a quench_status; quench_last_error gives the text of this thread's last failure.
   - Texts are UTF-8 and end with a zero byte, except where a size stands beside them. Returned texts belong to the handle that gave them,
   until its next call or its end; what must be freed says so. */

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define QUENCH_C_API __attribute__((visibility("default")))
#else
#define QUENCH_C_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef enum quench_status {
  QUENCH_OK = 0,
  QUENCH_END = 1,           /* nothing more comes: no failure */
  QUENCH_BAD_REQUEST = 2,   /* wrong usage, an impossible request, a context overflow */
  QUENCH_BAD_FILE = 3,      /* the file is damaged, truncated or contradicts itself */
  QUENCH_UNSUPPORTED = 4,   /* the file or request is valid, but quench does not do it */
  QUENCH_OUT_OF_MEMORY = 5, /* an allocation, a budget or the queue is exhausted */
  QUENCH_IO = 6,            /* the operating system refused a read or write */
  QUENCH_INTERNAL = 7       /* a defect of quench */
} quench_status;

/* "0.1.0" */
QUENCH_C_API const char* quench_version(void);
/* What went wrong in this thread's last call that failed; "" when none did. Valid until the thread's next call. */
QUENCH_C_API const char* quench_last_error(void);
/* Gives what quench has to say beside its results (warnings, in this version) to on_warning instead of stderr: one message at a time, from
   whichever thread it concerns, for the whole process. NULL: stderr again. It must not call quench. */
QUENCH_C_API quench_status quench_on_warning(void (*on_warning)(const char* message, void* user), void* user);
/* Frees what a function has handed over, where it says so. */
QUENCH_C_API void quench_free(void* memory);

/* ---- model: immutable, any number of threads at once ---- */

typedef struct quench_model quench_model;

typedef struct quench_model_options {
  size_t struct_size;
  int32_t threads;           /* for loading; 0: the physical cores that this process may use */
  size_t window;             /* sliding window of so many positions; 0: as the file says */
  const char* chat_template; /* chatml, llama3, gemma, gemma4; NULL: what the file calls for */
  /* Bytes read so far; may be NULL. */
  void (*progress)(uint64_t done, uint64_t total, void* user);
  void* progress_user;
  const char* pretokenizer; /* instead of the file's; NULL: as the file says */
} quench_model_options;

QUENCH_C_API void quench_model_options_init_sized(quench_model_options* options, size_t struct_size);
static inline void quench_model_options_init(quench_model_options* options) { quench_model_options_init_sized(options, sizeof(*options)); }
/* options may be NULL. */
QUENCH_C_API quench_status quench_model_load(const char* path, const quench_model_options* options, quench_model** model);
QUENCH_C_API void quench_model_free(quench_model* model);
QUENCH_C_API const char* quench_model_architecture(const quench_model* model);
QUENCH_C_API size_t quench_model_vocabulary_size(const quench_model* model);
QUENCH_C_API size_t quench_model_trained_context(const quench_model* model);
QUENCH_C_API size_t quench_model_embedding_size(const quench_model* model);
/* tokens: quench_free. add_bos_eos: as the model wants them. special: "<|im_end|>" in the text is that token. */
QUENCH_C_API quench_status quench_model_tokenize(const quench_model* model, const char* text, size_t text_bytes, int add_bos_eos,
                                                 int special, uint32_t** tokens, size_t* n_tokens);
/* text: quench_free; may hold zero bytes, and ends with one that text_bytes does not count. */
QUENCH_C_API quench_status quench_model_detokenize(const quench_model* model, const uint32_t* tokens, size_t n_tokens, int special,
                                                   char** text, size_t* text_bytes);

/* ---- engine: any number of threads at once ---- */

typedef struct quench_engine quench_engine;

typedef enum quench_cache_type { QUENCH_CACHE_F16 = 0, QUENCH_CACHE_Q8_0 = 1 } quench_cache_type;

typedef struct quench_engine_options {
  size_t struct_size;
  int32_t threads;            /* 0: the physical cores that this process may use */
  size_t context;             /* tokens of a prompt and its answer; 0: what the model was trained for, bounded by memory */
  uint64_t cache_bytes;       /* budget of the KV cache; 0: half of the memory that is free */
  int32_t cache_type;         /* quench_cache_type */
  size_t chunk;               /* most tokens in a pass */
  size_t max_running;         /* answers side by side */
  size_t max_waiting;         /* answers in the queue */
  const char* saved_cache;    /* file that keeps computed prefixes from run to run; NULL: none */
  uint64_t saved_cache_bytes; /* largest size of that file, 1 MiB at least */
} quench_engine_options;

typedef struct quench_engine_stats {
  size_t struct_size;
  size_t running;
  size_t waiting;
  uint64_t prompt_tokens;
  uint64_t cached_tokens;
  uint64_t drafted_tokens;
  uint64_t accepted_tokens;
  uint64_t preemptions;
  uint64_t cache_used_bytes;
  uint64_t cache_budget_bytes;
  size_t cached_positions;
} quench_engine_stats;

QUENCH_C_API void quench_engine_options_init_sized(quench_engine_options* options, size_t struct_size);
static inline void quench_engine_options_init(quench_engine_options* options) {
  quench_engine_options_init_sized(options, sizeof(*options));
}
/* options may be NULL. */
QUENCH_C_API quench_status quench_engine_new(const quench_model* model, const quench_engine_options* options, quench_engine** engine);
QUENCH_C_API void quench_engine_free(quench_engine* engine);
QUENCH_C_API size_t quench_engine_context(const quench_engine* engine);
/* stats->struct_size must be set. */
QUENCH_C_API quench_status quench_engine_get_stats(const quench_engine* engine, quench_engine_stats* stats);
/* Adds what was computed to the file saved_cache. Nothing without one. */
QUENCH_C_API quench_status quench_engine_save_cache(const quench_engine* engine);
/* Writes quench_model_embedding_size numbers. */
QUENCH_C_API quench_status quench_engine_embed(const quench_engine* engine, const char* text, float* embedding);
/* For each token but the first, the logarithm of its probability after those before it. Writes n_tokens - 1 numbers. Nothing is added
   to the tokens: a model that wants a BOS needs it (quench_model_tokenize with add_bos_eos). */
QUENCH_C_API quench_status quench_engine_score(const quench_engine* engine, const uint32_t* tokens, size_t n_tokens,
                                               float* log_probabilities);

/* ---- requests ---- */

typedef enum quench_thinking { QUENCH_THINKING_DEFAULT = 0, QUENCH_THINKING_ON = 1, QUENCH_THINKING_OFF = 2 } quench_thinking;

typedef struct quench_message {
  const char* role; /* system, user, assistant */
  const char* content;
} quench_message;

typedef struct quench_logit_bias {
  uint32_t token;
  float bias; /* added to the logit; -INFINITY forbids the token */
} quench_logit_bias;

#define QUENCH_AS_RECOMMENDED INT32_MIN

/* Doubles that are NAN, a top_k of -1, other whole numbers that are QUENCH_AS_RECOMMENDED and texts that are NULL are as the makers of the
   model recommend. docs/sampling.md explains all of them. */
typedef struct quench_sampling {
  size_t struct_size;
  double temperature; /* 0: the most probable token */
  int32_t top_k;      /* 0: off */
  double top_p;       /* 1: off */
  double min_p;       /* 0: off */
  double repeat_penalty;
  double frequency_penalty;
  double presence_penalty;
  const quench_logit_bias* logit_bias;
  size_t n_logit_bias;
  int32_t has_seed; /* 0: a random one */
  uint64_t seed;
  int32_t repeat_last_n;  /* tokens that the penalties look back on; 0: off, -1: all */
  double typical_p;       /* 1: off */
  double top_n_sigma;     /* 0: off */
  double xtc_probability; /* 0: off */
  double xtc_threshold;   /* above 0.5: off */
  int32_t min_keep;       /* top_p, min_p, typical_p and XTC leave at least this many tokens */
  double dynatemp_range;  /* 0: off */
  double dynatemp_exponent;
  double dry_multiplier; /* 0: off */
  double dry_base;
  int32_t dry_allowed_length;
  int32_t dry_penalty_last_n;      /* tokens looked back on; 0: off, -1: all */
  const char* const* dry_breakers; /* texts no repetition runs across; NULL: line feed, colon, quote, asterisk */
  size_t n_dry_breakers;
  int32_t mirostat; /* 0: off, 2 */
  double mirostat_tau;
  double mirostat_eta;
  const char* samplers; /* which steps, in which order: "penalties;dry;top_n_sigma;top_k;typ_p;top_p;min_p;xtc;temperature" */
} quench_sampling;

/* One of prompt, prompt_tokens and messages. */
typedef struct quench_request {
  size_t struct_size;
  const char* prompt; /* a text to continue; special tokens in it are recognised */
  const uint32_t* prompt_tokens;
  size_t n_prompt_tokens;
  const quench_message* messages; /* a conversation to answer, through the chat template */
  size_t n_messages;
  int32_t thinking;  /* quench_thinking */
  size_t max_tokens; /* 0: until the model ends its answer or the context is full */
  size_t n_answers;
  const char* const* stop; /* texts that end an answer and are no part of it */
  size_t n_stop;
  const uint32_t* stop_tokens;
  size_t n_stop_tokens;
  int32_t ignore_end;
  int32_t show_special;
  int32_t echo;
  const quench_sampling* sampling; /* NULL: as the makers of the model recommend */
  int32_t top_log_probabilities;   /* -1: none; else that many of the most probable tokens beside the drawn one */
  int32_t priority;
  double timeout_seconds; /* 0: none */
  int32_t speculate;
  const char* const* references; /* texts that the answer may quote, to guess from */
  size_t n_references;
} quench_request;

QUENCH_C_API void quench_sampling_init_sized(quench_sampling* sampling, size_t struct_size);
static inline void quench_sampling_init(quench_sampling* sampling) { quench_sampling_init_sized(sampling, sizeof(*sampling)); }
QUENCH_C_API void quench_request_init_sized(quench_request* request, size_t struct_size);
static inline void quench_request_init(quench_request* request) { quench_request_init_sized(request, sizeof(*request)); }

/* ---- streams: one thread at a time ---- */

typedef struct quench_stream quench_stream;

typedef enum quench_event_kind {
  QUENCH_EVENT_PROMPT = 0, /* done of total prompt tokens are computed */
  QUENCH_EVENT_TOKEN = 1,  /* a token was drawn; text is what it lets out, often nothing */
  QUENCH_EVENT_END = 2     /* the answer is complete; text is what was still held back */
} quench_event_kind;

typedef enum quench_finish {
  QUENCH_FINISH_END = 0,          /* the model ended its turn, or a stop token came */
  QUENCH_FINISH_STOP = 1,         /* a stop text came */
  QUENCH_FINISH_LENGTH = 2,       /* max_tokens */
  QUENCH_FINISH_CONTEXT_FULL = 3, /* the context has no room for another token */
  QUENCH_FINISH_TIMEOUT = 4,
  QUENCH_FINISH_CANCELLED = 5,
  QUENCH_FINISH_FAILED = 6 /* quench_stream_answer tells why */
} quench_finish;

typedef struct quench_token_probability {
  uint32_t token;
  float log_probability; /* natural logarithm, of the model's own distribution */
  const char* text;      /* the token's bytes: perhaps a part of a character */
  size_t text_bytes;
} quench_token_probability;

typedef struct quench_event {
  size_t struct_size;
  int32_t kind;  /* quench_event_kind */
  size_t answer; /* which of n_answers */
  size_t done;
  size_t total;
  uint32_t token;
  const char* text; /* whole UTF-8 characters, and never a part of a stop text */
  size_t text_bytes;
  const quench_token_probability* chosen; /* NULL where no log-probabilities are asked for */
  const quench_token_probability* top;
  size_t n_top;
  int32_t finish; /* of QUENCH_EVENT_END: quench_finish */
  int32_t failed; /* of QUENCH_EVENT_END: 1 where finish is QUENCH_FINISH_FAILED */
} quench_event;

typedef struct quench_answer {
  size_t struct_size;
  const char* text;
  size_t text_bytes;
  const uint32_t* tokens;
  size_t n_tokens;
  int32_t finish; /* quench_finish */
  size_t prompt_tokens;
  size_t cached_tokens;
  double prompt_seconds;
  double answer_seconds;
} quench_answer;

/* Refuses at once what can never be computed, and when the queue is full. */
QUENCH_C_API quench_status quench_engine_submit(const quench_engine* engine, const quench_request* request, quench_stream** stream);
/* Waits for the next event; QUENCH_END after the end of the last answer. event->struct_size must be set. */
QUENCH_C_API quench_status quench_stream_next(quench_stream* stream, quench_event* event);
/* Ends the answers as they are. Any thread may do it. */
QUENCH_C_API void quench_stream_cancel(quench_stream* stream);
/* Waits for the end, and gives answer number `answer`, as often as asked; of one that failed, its failure. out->struct_size must be set. */
QUENCH_C_API quench_status quench_stream_answer(quench_stream* stream, size_t answer, quench_answer* out);
/* Cancels what is not complete. */
QUENCH_C_API void quench_stream_free(quench_stream* stream);

/* ---- conversations: one thread at a time, any number on an engine ---- */

typedef struct quench_conversation quench_conversation;

typedef struct quench_conversation_options {
  size_t struct_size;
  const char* system; /* NULL: no system message */
  int32_t thinking;   /* quench_thinking */
  const quench_sampling* sampling;
  const char* const* stop;
  size_t n_stop;
  size_t max_tokens; /* of an answer */
  int32_t speculate;
  double timeout_seconds; /* of a turn; 0: none. After it the answer ends as it is, and is kept */
  /* done of the total tokens of a turn's prompt are computed; may be NULL. Called on the thread that waits; 0 cancels the turn. */
  int (*on_prompt)(size_t done, size_t total, void* user);
  void* on_prompt_user;
} quench_conversation_options;

/* Called on the thread that waits; 0 cancels the turn. It may not change the conversation. */
typedef int (*quench_on_text)(const char* text, size_t text_bytes, void* user);

QUENCH_C_API void quench_conversation_options_init_sized(quench_conversation_options* options, size_t struct_size);
static inline void quench_conversation_options_init(quench_conversation_options* options) {
  quench_conversation_options_init_sized(options, sizeof(*options));
}
/* options may be NULL. */
QUENCH_C_API quench_status quench_conversation_new(const quench_engine* engine, const quench_conversation_options* options,
                                                   quench_conversation** conversation);
QUENCH_C_API void quench_conversation_free(quench_conversation* conversation);
/* Adds a message and its answer. A turn that fails or is cancelled leaves the conversation as it was. on_text and answer may be NULL. */
QUENCH_C_API quench_status quench_conversation_send(quench_conversation* conversation, const char* message, quench_on_text on_text,
                                                    void* user, quench_answer* answer);
/* Answers the last message again. */
QUENCH_C_API quench_status quench_conversation_regenerate(quench_conversation* conversation, quench_on_text on_text, void* user,
                                                          quench_answer* answer);
/* Takes back the last message and its answer; QUENCH_END when there is none. */
QUENCH_C_API quench_status quench_conversation_undo(quench_conversation* conversation);
/* Ends the turn under way. Any thread may do it. */
QUENCH_C_API void quench_conversation_cancel(quench_conversation* conversation);
QUENCH_C_API quench_status quench_conversation_reset(quench_conversation* conversation);
/* json: quench_free */
QUENCH_C_API quench_status quench_conversation_to_json(const quench_conversation* conversation, char** json);
QUENCH_C_API quench_status quench_conversation_from_json(quench_conversation* conversation, const char* json);

#ifdef __cplusplus
}
#endif

#endif
