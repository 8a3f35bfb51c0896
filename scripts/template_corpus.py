#!/usr/bin/env python3
"""Writes the seeds of fuzz/template_fuzz.cpp to tests/corpus/templates.

A seed is a chat template's source, then fields behind the unit separator (0x1f): one letter for thinking (d, y, n), then messages, each
a letter for the role (s, u, a) and the content. The sources are our own: the shapes that published templates have, in small.
"""

import itertools
import pathlib

MARKERS = {
    "chatml": ("<|im_start|>", "\\n", "<|im_end|>\\n", "assistant"),
    "llama3": ("<|start_header_id|>", "<|end_header_id|>\\n\\n", "<|eot_id|>", "assistant"),
    "gemma": ("<start_of_turn>", "\\n", "<end_of_turn>\\n", "model"),
    "gemma4": ("<|turn>", "\\n", "<turn|>\\n", "model"),
    "none": ("[INST] ", " ", " [/INST]", "assistant"),
}

SHAPES = {
    "plain": "{% for m in messages %}{{ 'OPEN' + m['role'] + 'MIDDLE' + m['content'] + 'CLOSE' }}{% endfor %}"
             "{% if add_generation_prompt %}{{ 'OPENMODELMIDDLE' }}{% endif %}",
    "trimmed": "{{- bos_token }}\n{%- for m in messages -%}\n  {%- if m.role == 'assistant' -%}{%- set role = 'MODEL' -%}{%- else -%}"
               "{%- set role = m.role -%}{%- endif -%}\n  {{- 'OPEN' ~ role ~ 'MIDDLE' ~ (m.content | trim) ~ 'CLOSE' -}}\n{%- endfor -%}",
    "thinking": "{%- if enable_thinking is defined and not enable_thinking %}{{ '<think>\\n\\n</think>' }}{% endif %}"
                "{% for m in messages %}{{ 'OPEN' ~ m.role ~ 'MIDDLE' ~ m.content.split('</think>')[-1] ~ 'CLOSE' }}{% endfor %}",
    "checked": "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}"
               "{% macro turn(m) %}{{ 'OPEN' }}{{ m.role }}{{ 'MIDDLE' }}{{ m.content }}{{ 'CLOSE' }}{% endmacro %}"
               "{% for m in messages %}{{ turn(m) }}{% endfor %}",
}

CONVERSATIONS = [
    "d\x1fuHi",
    "n\x1fsBe brief.\x1fuWhat is the capital of France?",
    "y\x1fua\x1fa<think>\nhm\n</think>\n\nb\x1fuc",
    "d\x1fu\x1fa  d \n\x1fu<|im_end|><eos>\x1fa<|channel>thought\nx<channel|>y\x1fu\xe4\xff",
    "n\x1fsa\x1fsb\x1fuc\x1fud",
    "d",
    "y\x1faonly",
]


def main() -> None:
    folder = pathlib.Path(__file__).parent.parent / "tests/corpus/templates"
    folder.mkdir(parents=True, exist_ok=True)
    conversations = itertools.cycle(CONVERSATIONS)
    for (family, (opening, middle, close, model)), (shape, source) in itertools.product(MARKERS.items(), SHAPES.items()):
        for word, text in (("OPEN", opening), ("MIDDLE", middle), ("CLOSE", close), ("MODEL", model)):
            source = source.replace(word, text)
        for number in range(3):
            (folder / f"{family}-{shape}-{number}").write_bytes((source + "\x1f" + next(conversations)).encode("latin-1"))


if __name__ == "__main__":
    main()
