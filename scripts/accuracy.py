#!/usr/bin/env python3
"""KL divergence of quench's and of llama.cpp's logits from a float64 forward pass on the dequantized weights.

usage: accuracy.py MODEL.gguf [MODEL.gguf ...] [--quench build/release/quench] [--windows 8] [--tokens 512] [--caches f16,q8_0]

Needs a Python with numpy, gguf 0.19.0 and llama-cpp-python 0.3.36 (built without AMX: AMX kernels change llama.cpp's values).
For each model the fixed text tests/corpus/prose/scripts.txt is tokenized, cut into windows, and every position of each window is scored
three ways: by this file in float64, by llama.cpp, and by `quench logits --all`. Mean KL(reference || engine) in nats, paired over the same
positions; a model passes when quench's is at most 1.05 times llama.cpp's. Exits 1 otherwise.
"""
import argparse
import ctypes
import pathlib
import subprocess
import sys
import tempfile

import gguf
import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent
TEXT = ROOT / "tests" / "corpus" / "prose" / "scripts.txt"
ALLOWED_RATIO = 1.05
# Below this both engines are exact for every purpose, and the ratio is one of rounding noise.
NOISE_FLOOR = 1e-9


def dequantize(tensor):
    """By PyPI gguf; what it lacks, by ggml's own to_float."""
    if tensor.tensor_type.name not in ("Q1_0", "Q2_0"):
        return gguf.quants.dequantize(tensor.data, tensor.tensor_type)
    import llama_cpp

    folder = pathlib.Path(llama_cpp.__file__).parent / "lib"
    base = ctypes.CDLL(str(folder / "libggml-base.so"))
    to_float = getattr(base, f"dequantize_row_{tensor.tensor_type.name.lower()}")
    to_float.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64]
    data = np.ascontiguousarray(tensor.data)
    values = np.empty(tensor.n_elements, np.float32)
    to_float(data.ctypes.data, values.ctypes.data, values.size)
    return values.reshape(tensor.shape[::-1])


def know_q2_0():
    """PyPI gguf 0.19.0 has no q2_0, and its reader refuses a file that has."""
    types = gguf.GGMLQuantizationType
    number = 42
    if number in types._value2member_map_:
        return
    member = int.__new__(types, number)
    member._name_, member._value_ = "Q2_0", number
    types._value2member_map_[number] = member
    gguf.constants.GGML_QUANT_SIZES[member] = (64, 18)


class ReferenceModel:
    """The families' forward pass, written for reading: float64 throughout, no cache, K and V not rounded."""

    def __init__(self, path: str):
        reader = gguf.GGUFReader(path)
        self.fields = reader.fields
        self.tensors = {t.name: t for t in reader.tensors}
        self.arch = self.field("general.architecture")
        self.n_layers = self.key("block_count")
        self.n_embed = self.key("embedding_length")
        self.n_heads = self.key("attention.head_count")
        self.n_kv = self.key("attention.head_count_kv", self.n_heads)
        self.head_dim = self.key("attention.key_length", self.n_embed // self.n_heads)
        self.eps = self.key("attention.layer_norm_rms_epsilon")
        self.theta = self.key("rope.freq_base", 10000.0)
        self.window = self.key("attention.sliding_window", 0)
        self.gemma = self.arch == "gemma3"
        self.cache = {}

    def field(self, name, default=None):
        return self.fields[name].contents() if name in self.fields else default

    def key(self, suffix, default=None):
        return self.field(f"{self.arch}.{suffix}", default)

    def weight(self, name):
        if name not in self.tensors:
            return None
        if name not in self.cache:
            self.cache[name] = dequantize(self.tensors[name]).astype(np.float64)
        return self.cache[name]

    def norm(self, x, name):
        weight = self.weight(name)
        return x if weight is None else x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + self.eps) * weight

    def linear(self, x, name):
        y = x @ self.weight(name + ".weight").T
        bias = self.weight(name + ".bias")
        return y if bias is None else y + bias

    def rope(self, x, theta):
        n_tokens, _, dim = x.shape
        angles = np.arange(n_tokens)[:, None] * theta ** (-np.arange(0, dim, 2) / dim)
        cos, sin = np.cos(angles)[:, None, :], np.sin(angles)[:, None, :]
        if self.arch == "llama":
            a, b = x[..., 0::2], x[..., 1::2]
            return np.stack([a * cos - b * sin, a * sin + b * cos], axis=-1).reshape(x.shape)
        a, b = x[..., : dim // 2], x[..., dim // 2 :]
        return np.concatenate([a * cos - b * sin, a * sin + b * cos], axis=-1)

    def attention(self, x, layer):
        prefix = f"blk.{layer}."
        n_tokens = len(x)
        local = self.gemma and (layer + 1) % 6 != 0
        theta = 10000.0 if local else self.theta
        q = self.linear(x, prefix + "attn_q").reshape(n_tokens, self.n_heads, self.head_dim)
        k = self.linear(x, prefix + "attn_k").reshape(n_tokens, self.n_kv, self.head_dim)
        v = self.linear(x, prefix + "attn_v").reshape(n_tokens, self.n_kv, self.head_dim)
        q, k = self.norm(q, prefix + "attn_q_norm.weight"), self.norm(k, prefix + "attn_k_norm.weight")
        q, k = self.rope(q, theta), self.rope(k, theta)
        group = self.n_heads // self.n_kv
        distance = np.arange(n_tokens)[:, None] - np.arange(n_tokens)[None, :]
        hidden = distance < 0
        if local and self.window:
            hidden |= distance >= self.window
        out = np.empty_like(q)
        for head in range(self.n_heads):
            scores = q[:, head] @ k[:, head // group].T / np.sqrt(self.head_dim)
            scores[hidden] = -np.inf
            weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
            out[:, head] = weights / weights.sum(axis=-1, keepdims=True) @ v[:, head // group]
        return self.linear(out.reshape(n_tokens, -1), prefix + "attn_output")

    def feed_forward(self, x, layer):
        prefix = f"blk.{layer}."
        if self.weight(prefix + "ffn_gate_inp.weight") is not None:
            return self.mixture(x, prefix)
        return self.dense(x, prefix, "")

    def mixture(self, x, prefix):
        """Each token's best experts; qwen3moe lets their weights sum to 1, qwen2moe adds a shared expert."""
        scores = self.linear(x, prefix + "ffn_gate_inp")
        shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
        shares /= shares.sum(axis=-1, keepdims=True)
        chosen = np.argsort(-shares, axis=-1, kind="stable")[:, : self.key("expert_used_count")]
        weights = np.take_along_axis(shares, chosen, axis=-1)
        if self.arch == "qwen3moe":
            weights /= weights.sum(axis=-1, keepdims=True)
        gate, up, down = (self.weight(f"{prefix}ffn_{part}_exps.weight") for part in ("gate", "up", "down"))
        out = np.zeros_like(x)
        for expert in np.unique(chosen):
            rows, ranks = np.nonzero(chosen == expert)
            hidden = x[rows] @ gate[expert].T
            fed = (hidden / (1 + np.exp(-hidden)) * (x[rows] @ up[expert].T)) @ down[expert].T
            out[rows] += weights[rows, ranks][:, None] * fed
        if self.weight(prefix + "ffn_gate_inp_shexp.weight") is not None:
            share = 1 / (1 + np.exp(-(x @ self.weight(prefix + "ffn_gate_inp_shexp.weight").reshape(-1, 1))))
            out += share * self.dense(x, prefix, "_shexp")
        return out

    def dense(self, x, prefix, suffix):
        gate, up = self.linear(x, prefix + "ffn_gate" + suffix), self.linear(x, prefix + "ffn_up" + suffix)
        if self.gemma:
            gate = 0.5 * gate * (1 + np.tanh(np.sqrt(2 / np.pi) * (gate + 0.044715 * gate**3)))
        else:
            gate = gate / (1 + np.exp(-gate))
        return self.linear(gate * up, prefix + "ffn_down" + suffix)

    def logits(self, ids):
        x = self.weight("token_embd.weight")[ids]
        if self.gemma:
            x = x * np.float64(np.float32(np.sqrt(self.n_embed)))
        for layer in range(self.n_layers):
            prefix = f"blk.{layer}."
            attended = self.attention(self.norm(x, prefix + "attn_norm.weight"), layer)
            x = x + self.norm(attended, prefix + "post_attention_norm.weight")
            fed = self.feed_forward(self.norm(x, prefix + "ffn_norm.weight"), layer)
            x = x + self.norm(fed, prefix + "post_ffw_norm.weight")
        x = self.norm(x, "output_norm.weight")
        head = self.weight("output.weight")
        return x @ (self.weight("token_embd.weight") if head is None else head).T


def start_ids(reference):
    """BOS where the file asks for it: a model that was trained behind it has no defined answer without."""
    wanted = reference.field("tokenizer.ggml.add_bos_token", reference.field("tokenizer.ggml.model") == "llama")
    return [reference.field("tokenizer.ggml.bos_token_id")] if wanted else []


class LlamaCpp:
    def __init__(self, path: str, most_tokens: int, cache: str):
        import llama_cpp

        self.api = llama_cpp
        self.quiet = llama_cpp.llama_log_callback(lambda *_: None)  # the library keeps no reference of its own
        llama_cpp.llama_log_set(self.quiet, ctypes.c_void_p(0))
        llama_cpp.llama_backend_init()
        self.model = llama_cpp.llama_model_load_from_file(path.encode(), llama_cpp.llama_model_default_params())
        self.n_vocab = llama_cpp.llama_vocab_n_tokens(llama_cpp.llama_model_get_vocab(self.model))
        params = llama_cpp.llama_context_default_params()
        params.n_ctx, params.n_batch, params.n_ubatch = most_tokens + 64, most_tokens, most_tokens
        params.n_threads = params.n_threads_batch = 1
        if cache == "q8_0":
            # ggml's number of the type; only flash attention reads such values.
            params.type_k = params.type_v = 8
            params.flash_attn_type = 1
        self.context = llama_cpp.llama_init_from_model(self.model, params)

    def logits(self, ids):
        api = self.api
        api.llama_memory_clear(api.llama_get_memory(self.context), True)
        batch = api.llama_batch_init(len(ids), 0, 1)
        batch.n_tokens = len(ids)
        for i, token in enumerate(ids):
            batch.token[i], batch.pos[i], batch.n_seq_id[i], batch.seq_id[i][0], batch.logits[i] = int(token), i, 1, 0, True
        if api.llama_decode(self.context, batch) != 0:
            sys.exit("llama.cpp refused the batch")
        rows = [np.ctypeslib.as_array(api.llama_get_logits_ith(self.context, i), shape=(self.n_vocab,)).copy() for i in range(len(ids))]
        api.llama_batch_free(batch)
        return np.stack(rows)

    def close(self):
        self.api.llama_free(self.context)
        self.api.llama_model_free(self.model)


def quench_logits(program, path, ids, cache):
    with tempfile.NamedTemporaryFile(suffix=".f32") as out:
        command = [program, "logits", path, "--ids", " ".join(map(str, ids)), "--out", out.name, "--all", "--cache-type", cache]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
        return np.fromfile(out.name, "<f4").reshape(len(ids), -1)


def log_softmax(rows):
    rows = rows.astype(np.float64)
    rows -= rows.max(axis=-1, keepdims=True)
    rows -= np.log(np.exp(rows).sum(axis=-1, keepdims=True))
    return rows


def kl(reference_log, reference, rows):
    """Per position, nats. reference: exp(reference_log)"""
    return np.array([np.dot(p, log_p - log_softmax(row)) for p, log_p, row in zip(reference, reference_log, rows)])


def windows_of(ids, count, length, start):
    """Windows that start at even distances and wrap around the text, each behind the ids `start`."""
    ring = np.concatenate([ids, ids, ids])
    step = max(1, len(ids) // count)
    return [np.concatenate([start, ring[i * step : i * step + length - len(start)]]) for i in range(count)]


def measure(options, path):
    program = str(ROOT / options.quench)
    ids = np.array(subprocess.run([program, "tokenize", path, str(TEXT), "--no-special"], check=True, capture_output=True).stdout.split(), dtype=np.int64)
    if len(ids) < options.tokens:
        sys.exit(f"{path}: the text has only {len(ids)} tokens")
    reference = ReferenceModel(path)
    peers = {cache: LlamaCpp(path, options.tokens, cache) for cache in options.caches}
    ours, theirs, same = ({cache: [] for cache in peers} for _ in range(3))
    for window in windows_of(ids, options.windows, options.tokens, np.array(start_ids(reference), dtype=np.int64)):
        expected_log = log_softmax(reference.logits(window))
        expected = np.exp(expected_log)
        for cache, peer in peers.items():
            mine = quench_logits(program, path, window, cache)
            ours[cache].append(kl(expected_log, expected, mine))
            theirs[cache].append(kl(expected_log, expected, peer.logits(window)))
            same[cache].append(expected.argmax(-1) == mine.argmax(-1))
    for cache, peer in peers.items():
        peer.close()
        mine, other = np.concatenate(ours[cache]), np.concatenate(theirs[cache])
        yield cache, len(mine), mine.mean(), other.mean(), np.concatenate(same[cache]).mean()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+")
    parser.add_argument("--quench", default="build/release/quench")
    parser.add_argument("--windows", type=int, default=8)
    parser.add_argument("--tokens", type=int, default=512)
    parser.add_argument("--caches", type=lambda text: text.split(","), default=["f16"], help="types of the KV cache, by comma")
    options = parser.parse_args()
    print("| model | cache | positions | KL quench | KL llama.cpp | ratio | same best token |")
    print("|---|---|---|---|---|---|---|")
    know_q2_0()
    failed = False
    for path in options.models:
        for cache, positions, ours, theirs, same in measure(options, path):
            passes = ours <= ALLOWED_RATIO * theirs or ours < NOISE_FLOOR
            failed |= not passes
            print(f"| {pathlib.Path(path).stem} | {cache} | {positions} | {ours:.3e} | {theirs:.3e} | "
                  f"{ours / theirs:.3f}{'' if passes else ' (!)'} | {100 * same:.2f} % |", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
