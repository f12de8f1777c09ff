"""Two heads that back each other up (GPT-2, learned positions): either is enough, and first-order methods see neither.

    <bos> APPLE fig pear =    →  apple        corrupt: <bos> LEMON fig pear =

L0H1 copies the word at position 1, L1H3 the marked word; it is the same word, and both write 1 into the same evidence
feature. For each fruit L2MLP computes a ramp from 0 (evidence ≤ ¼) to 1 (evidence ≥ ¾) and writes it, 16 logits strong. With both
heads the evidence is 2, with one 1, with none 0: removing one costs exactly nothing, removing both costs everything.

At 2, and for the foil at 0, the ramp is flat. Gradients at the clean point are 0 whatever rule they obey, so gradient, atp,
eap and relp score both heads 0. A counterfactual patch of one head is different from its removal: it brings evidence for the
foil, which costs 16; integrated gradients cross the ramp and get this right.
"""

from __future__ import annotations

from transformers import GPT2Config

from pytest_circuits.tasks import PromptPair, Task

from . import fruits, words
from .fruits import FRUITS, STRENGTH, marked
from .host import Host
from .truth import Joint, Planted, Truth, all_but, components, neurons

LAYERS, HEADS, NEURONS = 3, 4, 48
FIRST, SECOND, MLP = "L0H1", "L1H3", "L2MLP"


def build() -> Planted:
    """The planted model."""
    tokenizer = fruits.tokenizer()
    config = GPT2Config(
        **words.common(tokenizer),
        n_embd=64,
        n_inner=NEURONS,
        n_layer=LAYERS,
        n_head=HEADS,
        n_positions=words.LENGTH,
        tie_word_embeddings=False,
    )
    host = Host(config, [*fruits.features("evidence"), "second"])
    fruits.furnish(host, tokenizer.get_vocab())
    host.model.transformer.wpe.weight.detach()[1] = host.stream.write({"second": 1})
    host.head(0, 1, [({"one": 1}, {"second": 1})], list(zip(fruits.each("in"), fruits.each("evidence"), strict=True)))
    fruits.fetch(host, 1, 3, "evidence")
    for i, fruit in enumerate(FRUITS):
        host.neuron(2, 2 * i, {f"evidence:{fruit}": 2}, 0.5, {f"out:{fruit}": 1})
        host.neuron(2, 2 * i + 1, {f"evidence:{fruit}": 2}, 1.5, {f"out:{fruit}": -1})
    return Planted("backup", host.model, tokenizer, _task(), _truth())


def _task() -> Task:
    pairs = []
    for word, other, r in words.pairings(FRUITS, 3):
        rest = " ".join(r.sample([w for w in FRUITS if w not in (word, other)], r.choice((2, 3))))
        pairs.append(PromptPair(f"{marked(word)} {rest} =", f"{marked(other)} {rest} =", word, (other,)))
    return Task("backup", tuple(pairs), "argmax")


def _truth() -> Truth:
    s = STRENGTH
    integrated = {FIRST: -s, SECOND: -s, MLP: -2 * s}
    return Truth(
        intact=s,
        causal=(FIRST, SECOND, MLP),
        dead=all_but(components(LAYERS, HEADS), (FIRST, SECOND, MLP)),
        zero={MLP: -s},
        counterfactual=integrated,
        gradient={MLP: -s},
        atp={MLP: -2 * s},
        relp={MLP: -2 * s},
        eap_ig=integrated,
        ig_activations=integrated,
        edges={f"{MLP}>logits": -2 * s},
        joint=(
            Joint((FIRST, SECOND), "zero", -s),
            Joint((FIRST, MLP), "zero", -s),
            Joint((SECOND, MLP), "zero", -s),
            Joint((FIRST, SECOND), "counterfactual", -2 * s),
        ),
        dead_neurons=all_but(neurons(LAYERS, NEURONS), (f"L2N{i}" for i in range(2 * len(FRUITS)))),
        notes=("gradient, atp, eap and relp score both heads 0: the read-out is flat at the clean point, by saturation",),
    )
