"""What quench has to reach against its peers, cell by cell, and whether it did."""
from dataclasses import dataclass

# A cell that reaches this share of its own roofline passes whatever the peer does: no engine can do much better on this machine.
OWN_ROOFLINE = 0.8
# A peer that reads this near to the roofline cannot be beaten by much.
PEER_AT_ROOFLINE = 0.9

SUPER_BLOCK_AND_PLAIN = ("q8_0", "q4_k_m", "q4_0", "q5_k_m", "q6_k", "iq4_xs", "iq4_nl", "q2_k", "q3_k", "q3_k_m", "q5_0", "q4_1", "mxfp4")
FLOATS = ("f16", "bf16", "f32")
FOUR_BITS = ("q4_k_m", "q4_0", "q4_1", "q4_k", "q4_k_s", "iq4_xs", "iq4_nl", "mxfp4")


@dataclass(frozen=True)
class Machine:
    name: str
    intel: bool
    amx: bool


@dataclass(frozen=True)
class Target:
    ratio: float | None = None  # times the peer's speed; None = reported only
    ratio_beside_a_fast_peer: float | None = None  # where the peer itself is at the roofline
    read_share: float | None = None  # of the read roofline, besides the ratio


def target_of(test: str, weights: str, cache: str, machine: Machine, peer: str = "llama") -> Target:
    """`test` as quench bench names it, `first token` or `resident`; `weights` a format or a mix."""
    weights = weights.lower()
    if peer == "openvino":
        needed = test == "pp512" and machine.amx and weights in ("q8_0", "q4_0")
        return Target(ratio=1.5) if needed else Target()
    if test == "first token":
        return Target(ratio=1 / 0.7)
    if test == "pp512":
        return prefill_target(weights, machine)
    if test == "pp512@d4096":
        return Target(ratio=10.0 if cache == "q8_0" else 2.2 if machine.intel else 1.9)
    if test == "tg32":
        return decode_target(weights)
    if test == "tg32x16":
        return Target(ratio=2.3 if machine.amx else 3.0)
    if test == "tg32@d4096":
        return Target(ratio=4.0 if cache == "q8_0" else 2.2)
    return Target()


def prefill_target(weights: str, machine: Machine) -> Target:
    if weights in SUPER_BLOCK_AND_PLAIN:
        return Target(ratio=3.0)
    if weights == "f16":
        return Target(ratio=1.3 if machine.intel else 1.15)
    return Target() if weights in FLOATS else Target(ratio=1.5)


def decode_target(weights: str) -> Target:
    if weights in ("q8_0", "f16"):
        return Target(ratio=1.15, ratio_beside_a_fast_peer=1.0, read_share=0.92)
    if weights in FOUR_BITS:
        return Target(ratio=1.15, ratio_beside_a_fast_peer=1.0, read_share=0.75)
    if weights in SUPER_BLOCK_AND_PLAIN or weights in FLOATS:
        return Target(ratio=1.15, ratio_beside_a_fast_peer=1.0)
    return Target(ratio=1.0)


def needed_ratio(target: Target, peer_share: float | None) -> float | None:
    if target.ratio_beside_a_fast_peer is not None and peer_share is not None and peer_share >= PEER_AT_ROOFLINE:
        return target.ratio_beside_a_fast_peer
    return target.ratio


def passes(target: Target, lower_bound: float, own_share: float | None, read_share: float | None, peer_share: float | None) -> bool:
    """own_share: of the roofline that bounds the test, bytes or operations; read_share: of the read roofline."""
    if own_share is not None and own_share >= OWN_ROOFLINE:
        return True
    ratio = needed_ratio(target, peer_share)
    if ratio is not None and lower_bound < ratio:
        return False
    return target.read_share is None or read_share is None or read_share >= target.read_share


def resident_limit_bytes(file_bytes: int, cache_bytes: int) -> int:
    return int(1.1 * file_bytes) + cache_bytes + (64 << 20)
