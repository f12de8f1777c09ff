"""Induction (GPT-2, learned positions): two heads, composed through keys.

    <bos> fig apple lemon pear grape fig    →  apple        corrupt: <bos> lemon apple fig pear grape fig   (answer: pear)

L0H3 copies each token's predecessor into a feature of its own. From the last token, L1H0 attends to where the predecessor is the same
fruit (to <bos> at half the score, in case there is none) and copies the token there to the output, 16 logits strong. The first head
acts only through the keys of the second: its one edge is L0H3 → L1H0.k.

With the default sharpness, attention is one-hot and its derivative 0: gradients score L0H3 0, while removing it costs everything.
Integrated gradients depend on whether a midpoint meets the jump of the pattern half way: with 8 steps none does and L0H3 scores 0,
with 5 steps one does and it scores 1229, for an effect of 32. With a low sharpness the pattern is soft and the truth a formula
of its probabilities; RelP, which holds patterns constant, still sees nothing.
"""

from __future__ import annotations

from itertools import pairwise
from math import exp

from transformers import GPT2Config

from pytest_circuits.tasks import PromptPair, Task

from . import words
from .host import SHARPNESS, Host
from .truth import Joint, Planted, Truth, all_but, components, neurons

FRUITS = ("apple", "cherry", "fig", "grape", "lemon", "pear")
LAYERS, HEADS, NEURONS, STRENGTH = 2, 4, 32, 16.0
POSITIONS = 7  # <bos>, two pairs, a filler, the last token
PREVIOUS, MATCH = "L0H3", "L1H0"


def build(sharpness: float = SHARPNESS) -> Planted:
    """The planted model; `sharpness` is the attention score of L1H0 for a full match."""
    tokenizer = words.tokenizer(FRUITS)
    config = GPT2Config(
        **words.common(tokenizer),
        n_embd=64,
        n_inner=NEURONS,
        n_layer=LAYERS,
        n_head=HEADS,
        n_positions=POSITIONS,
        tie_word_embeddings=False,
    )
    places = [f"at:{i}" for i in range(POSITIONS)]
    host = Host(config, ["one", "bos", *places, *(f"{kind}:{w}" for kind in ("in", "previous", "out") for w in FRUITS)])
    token = tokenizer.get_vocab()
    for name in token:
        host.embed(token[name], {"one": 1})
    host.embed(words.BOS, {"one": 1, "bos": 1})
    for i, place in enumerate(places):
        host.model.transformer.wpe.weight.detach()[i] = host.stream.write({place: 1})
    for fruit in FRUITS:
        host.embed(token[fruit], {"one": 1, f"in:{fruit}": 1})
        host.unembed(token[fruit], {f"out:{fruit}": STRENGTH})
    before = [({after: 1}, {place: 1}) for place, after in pairwise(places)]
    host.head(0, 3, before, [(f"in:{w}", f"previous:{w}") for w in FRUITS])
    same = [({f"in:{w}": 1}, {f"previous:{w}": 1}) for w in FRUITS]
    host.head(1, 0, [*same, ({"one": 1}, {"bos": 0.5})], [(f"in:{w}", f"out:{w}") for w in FRUITS], sharpness=sharpness)
    return Planted("induction", host.model, tokenizer, _task(), _truth(sharpness))


def _task() -> Task:
    pairs = []
    for answer, foil, r in words.pairings(FRUITS, 4):
        first, second, filler = r.sample([w for w in FRUITS if w not in (answer, foil)], 3)
        row = [f"{first} {answer}", f"{second} {foil}", filler]
        r.shuffle(row)
        clean = " ".join([*row, first])
        swapped = {first: second, second: first}
        corrupt = " ".join([*(swapped.get(w, w) for w in " ".join(row).split()), first])
        pairs.append(PromptPair(clean, corrupt, answer, (foil,)))
    return Task("induction", tuple(pairs), "argmax")


def _attention(answer: float, foil: float, sink: float) -> tuple[float, float]:
    """Attention to the answer and to the foil, from their scores and that of <bos>; the other positions score 0."""
    top = max(answer, foil, sink, 0.0)
    weights = [exp(score - top) for score in (answer, foil, sink)]
    total = sum(weights) + (POSITIONS - 3) * exp(-top)
    return weights[0] / total, weights[1] / total


def _truth(sharpness: float) -> Truth:
    def metric(to_answer: float, to_foil: float) -> float:
        return STRENGTH * (to_answer - to_foil)

    def slopes(alpha: float) -> tuple[float, float]:
        """∂metric/∂(score of the answer's position, of the foil's), a share alpha of the way from corrupt to clean."""
        p, q = _attention(alpha * sharpness, (1 - alpha) * sharpness, sharpness / 2)
        return metric(p * (1 - p), -p * q), metric(-p * q, q * (1 - q))

    def exchange(alpha: float) -> float:
        """First-order effect of the corrupt keys, with slopes taken at alpha."""
        answer, foil = slopes(alpha)
        return sharpness * (foil - answer)

    whole = metric(*_attention(sharpness, 0, sharpness / 2))
    integrated = {PREVIOUS: sum(exchange((k + 0.5) / 8) for k in range(8)) / 8, MATCH: -2 * whole}
    return Truth(
        intact=whole,
        causal=(PREVIOUS, MATCH),
        dead=all_but(components(LAYERS, HEADS), (PREVIOUS, MATCH)),
        zero={PREVIOUS: -whole, MATCH: -whole},
        counterfactual={PREVIOUS: -2 * whole, MATCH: -2 * whole},
        gradient={PREVIOUS: -sharpness * slopes(1)[0], MATCH: -whole},
        atp={PREVIOUS: exchange(1), MATCH: -2 * whole},
        relp={MATCH: -2 * whole},
        eap_ig=integrated,
        ig_activations=integrated,
        edges={f"{PREVIOUS}>{MATCH}.k": exchange(1), f"{MATCH}>logits": -2 * whole},
        joint=(Joint((PREVIOUS, MATCH), "zero", -whole), Joint((PREVIOUS, MATCH), "counterfactual", -2 * whole)),
        dead_neurons=neurons(LAYERS, NEURONS),
        notes=(
            f"a saturated attention pattern has derivative 0: at the default sharpness gradient, atp and eap score {PREVIOUS} 0, "
            "and integrated gradients 0 or far too much, depending on the steps",
            f"relp holds patterns constant and therefore never sees {PREVIOUS}, which acts through keys alone",
        ),
    )
