"""Writes tests/corpus/batch/: lines from which batch_fuzz starts, requests and results, good and bad.

usage: make_batch_corpus.py
"""

import json
import pathlib

OUT = pathlib.Path(__file__).resolve().parent.parent / "tests/corpus/batch"

MESSAGES = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "What is the capital of France?"}]


def requests():
    yield {"prompt": "Once upon a time"}
    yield {"id": "a-1", "prompt": "", "max_tokens": 0}
    yield {"id": 7, "messages": MESSAGES, "max_tokens": 100, "stop": "\n"}
    yield {"id": None, "messages": MESSAGES + [{"role": "assistant", "content": "Paris."}, {"role": "user", "content": "And of Spain?"}]}
    yield {"id": 1.5, "prompt": "caf\u00e9 \U0001f600 \u4e2d\u6587", "stop": ["", ".", "\u0000"]}
    for key in ("temperature", "top_p", "min_p", "repeat_penalty", "frequency_penalty", "presence_penalty"):
        for value in (0, 1, 0.5, -1.5, 1e308, -1e-308, 12345678901234567890, "1", None, [1], True):
            yield {"prompt": "a", key: value}
    for key in ("max_tokens", "top_k", "seed"):
        for value in (0, 1, 2**31 - 1, 2**31, 2**63, 2**64 - 1, -1, 1.0, "1"):
            yield {"prompt": "a", key: value}
    for value in ("x", 1, 1.5, True, None, [1], {"a": 1}):
        yield {"id": value, "prompt": "a"}
    for messages in ([], {}, [1], [{}], [{"role": "user"}], [{"content": ""}], [{"role": "robot", "content": ""}], [{"role": 1, "content": 2}],
                     [{"role": "user", "content": "", "name": "x"}]):
        yield {"messages": messages}
    yield {}
    yield {"prompt": "a", "messages": MESSAGES}
    yield {"promt": "a"}
    yield {"line": 1, "input": "0123456789abcdef", "id": None, "text": "a", "finish": "stop"}
    yield {"line": 18446744073709551615, "input": "ffffffffffffffff", "id": "x", "error": "too long"}
    yield {"line": -1, "input": "0123456789abcdef"}
    yield {"line": 1, "input": "0123456789ABCDEF"}
    yield {"line": 1, "input": "123"}
    yield {"line": "1", "input": 5}


def texts():
    yield from (json.dumps(request).encode() for request in requests())
    yield json.dumps({"prompt": "\u00e9"}, ensure_ascii=False).encode()
    yield b""
    yield b"{"
    yield b"[1]"
    yield b"no json"
    yield b'{"prompt": "a", "prompt": "b"}'
    yield b'{"prompt": "\xff\xfe"}'
    yield b'{"prompt": "a"} x'
    yield b'{"id": ' + b"[" * 300 + b"]" * 300 + b', "prompt": "a"}'
    yield b'\xef\xbb\xbf{"prompt": "a"}'


def main():
    OUT.mkdir(parents=True, exist_ok=True)
    for number, text in enumerate(texts()):
        (OUT / f"{number:03d}").write_bytes(text)


main()
