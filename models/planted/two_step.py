"""Two-step lookup (GPT-NeoX, parallel blocks): a head fetches the key, a later MLP maps it; neither works without the other.

    <bos> fig APPLE pear =    →  banana       corrupt: <bos> fig LEMON pear =   (answer: the next fruit of the alphabet)

L0H1 copies the marked fruit to the last position as a key, which the unembedding does not read; neuron i of L1MLP fires where
key i is above one half, 2·(key − ½), and writes the answer, 16 logits strong. Both are necessary and removing both is no
worse than removing one. The only edges are L0H1 → L1MLP → logits.

A threshold makes gradient × activation overshoot at L0H1: the slope there is twice the mean slope down to zero.
"""

from __future__ import annotations

from transformers import GPTNeoXConfig

from . import fruits, words
from .fruits import FRUITS, STRENGTH
from .host import Host
from .truth import Joint, Planted, Truth, all_but, components, neurons

LAYERS, HEADS, NEURONS = 3, 4, 32
HEAD, MLP = "L0H1", "L1MLP"
NEXT = dict(zip(FRUITS, [*FRUITS[1:], FRUITS[0]], strict=True))


def build() -> Planted:
    """The planted model."""
    tokenizer = fruits.tokenizer()
    config = GPTNeoXConfig(
        **words.common(tokenizer),
        hidden_size=64,
        intermediate_size=NEURONS,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        max_position_embeddings=words.LENGTH,
    )
    host = Host(config, fruits.features("key"))
    fruits.furnish(host, tokenizer.get_vocab())
    fruits.fetch(host, 0, 1, "key")
    for i, fruit in enumerate(FRUITS):
        host.neuron(1, _neuron(i), {f"key:{fruit}": 2}, 1, {f"out:{NEXT[fruit]}": 1})
    return Planted("two_step", host.model, tokenizer, fruits.exchanged("two_step", NEXT), _truth())


def _neuron(i: int) -> int:
    return 5 + 3 * i


def _truth() -> Truth:
    s = STRENGTH
    both = {HEAD: -2 * s, MLP: -2 * s}
    writers = {NEXT[fruit]: f"L1N{_neuron(i)}" for i, fruit in enumerate(FRUITS)}
    return Truth(
        intact=s,
        causal=(HEAD, MLP),
        dead=all_but(components(LAYERS, HEADS), (HEAD, MLP)),
        zero={HEAD: -s, MLP: -s},
        counterfactual=both,
        gradient={HEAD: -2 * s, MLP: -s},
        atp=both,
        relp=both,
        eap_ig=both,
        ig_activations=both,
        edges={f"{HEAD}>{MLP}": -2 * s, f"{MLP}>logits": -2 * s},
        joint=(Joint((HEAD, MLP), "zero", -s), Joint((HEAD, MLP), "counterfactual", -2 * s)),
        neurons=writers,
        dead_neurons=all_but(neurons(LAYERS, NEURONS), writers.values()),
        notes=("gradient: the neurons have a threshold, so the slope at the clean point is twice the mean slope down to zero",),
    )
