"""A hidden hero and a gradient bloat (Llama): the head that matters has no gradient, the head with the gradient does not matter.

    <bos> fig APPLE pear =    →  apple        corrupt: <bos> fig LEMON pear =

Both heads copy the marked fruit with amount 2, each into features of its own; L2MLP reads them through two shapes.
L0H2, the hero: a ramp from 0 (≤ ¼) to 1 (≥ ¾), flat at 2 and at 0. Its gradient is 0, and the answer depends on it alone.
L1H0, the bloat: a hat that is 0 up to ½, rises to ¾ at 1¼ and falls back to 0 at 2. It adds 0 at 2 and at 0, so nothing depends on the
head; but at 2 its slope is −1, so a gradient says that removing it would *gain* 32.

RelP in a gated MLP gives half of a product's gradient to the gate, which both shapes are read through: it says 16.
Integrated gradients cross both shapes and are right about both heads.
"""

from __future__ import annotations

from transformers import LlamaConfig

from . import fruits, words
from .fruits import FRUITS, STRENGTH
from .host import Host
from .truth import Joint, Planted, Truth, all_but, components, neurons

LAYERS, HEADS, NEURONS = 3, 4, 48
HERO, BLOAT, MLP = "L0H2", "L1H0", "L2MLP"


def build() -> Planted:
    """The planted model."""
    tokenizer = fruits.tokenizer()
    config = LlamaConfig(
        **words.common(tokenizer),
        hidden_size=64,
        intermediate_size=NEURONS,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=HEADS,
        max_position_embeddings=words.LENGTH,
    )
    host = Host(config, fruits.features("ramp", "hat"))
    fruits.furnish(host, tokenizer.get_vocab())
    fruits.fetch(host, 0, 2, "ramp", amount=2)
    fruits.fetch(host, 1, 0, "hat", amount=2)
    for i, fruit in enumerate(FRUITS):
        host.neuron(2, 4 * i, {f"ramp:{fruit}": 2}, 0.5, {f"out:{fruit}": 1})
        host.neuron(2, 4 * i + 1, {f"ramp:{fruit}": 2}, 1.5, {f"out:{fruit}": -1})
        host.neuron(2, 4 * i + 2, {f"hat:{fruit}": 1}, 0.5, {f"out:{fruit}": 1})
        host.neuron(2, 4 * i + 3, {f"hat:{fruit}": 1}, 1.25, {f"out:{fruit}": -2})
    return Planted("hero_bloat", host.model, tokenizer, fruits.exchanged("hero_bloat", {w: w for w in FRUITS}), _truth())


def _truth() -> Truth:
    s = STRENGTH
    exact = {HERO: -2 * s, MLP: -2 * s}
    return Truth(
        intact=s,
        causal=(HERO, MLP),
        dead=all_but(components(LAYERS, HEADS), (HERO, BLOAT, MLP)),
        zero={HERO: -s, MLP: -s},
        counterfactual=exact,
        gradient={BLOAT: 2 * s, MLP: -s},
        atp={BLOAT: 2 * s, MLP: -2 * s},
        relp={BLOAT: s, MLP: -2 * s},
        eap_ig=exact,
        ig_activations=exact,
        edges={f"{BLOAT}>{MLP}": 2 * s, f"{MLP}>logits": -2 * s},
        joint=(Joint((HERO, BLOAT), "zero", -s), Joint((HERO, BLOAT), "counterfactual", -2 * s)),
        dead_neurons=all_but(neurons(LAYERS, NEURONS), (f"L2N{i}" for i in range(4 * len(FRUITS)))),
        notes=(
            f"gradient, atp, eap and relp score the hero {HERO} 0: its read-out is flat at the clean point",
            f"gradient, atp, eap and relp score the bloat {BLOAT} as if it mattered: its read-out is steep there but comes back to 0",
        ),
    )
