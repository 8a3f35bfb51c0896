"""Writes tests/golden/tokenizer/*.ids: token ids that llama.cpp gives for the texts beside them.

usage: golden_tokenizer.py FOLDER     FOLDER holds the vocabulary files (ggml-vocab-*.gguf and the models of scripts/assets.json)

Each line of an .ids file: the text's file name, "special" or "plain" (special tokens recognised or not), then the ids; no BOS or EOS.
Made with llama-cpp-python 0.3.36. Run it in an environment that has that package.
"""

import ctypes
import pathlib
import sys

import llama_cpp

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "tests/golden/tokenizer"


def vocabulary_of(path):
    parameters = llama_cpp.llama_model_default_params()
    parameters.vocab_only = True
    model = llama_cpp.llama_model_load_from_file(str(path).encode(), parameters)
    return model, llama_cpp.llama_model_get_vocab(model)


def ids_of(vocabulary, text, special):
    ids = (llama_cpp.llama_token * (2 * len(text) + 16))()
    count = llama_cpp.llama_tokenize(vocabulary, text, len(text), ids, len(ids), False, special)
    assert count >= 0
    return ids[:count]


def main():
    silent = llama_cpp.llama_log_callback(lambda *_: None)
    llama_cpp.llama_log_set(silent, ctypes.c_void_p(0))
    llama_cpp.llama_backend_init()
    texts = sorted(GOLDEN.glob("*.txt"))
    for path in sorted(pathlib.Path(sys.argv[1]).glob("*.gguf")):
        try:
            model, vocabulary = vocabulary_of(path)
        except ValueError:
            print(f"{path.name}: llama.cpp cannot load it", file=sys.stderr)
            continue
        if llama_cpp.llama_vocab_type(vocabulary) not in (1, 2):  # SentencePiece, byte pairs
            continue
        lines = []
        for text in texts:
            for special in (True, False):
                ids = ids_of(vocabulary, text.read_bytes(), special)
                lines.append(" ".join([text.name, "special" if special else "plain", *map(str, ids)]))
        (GOLDEN / f"{path.stem}.ids").write_text("\n".join(lines) + "\n")
        llama_cpp.llama_model_free(model)


main()
