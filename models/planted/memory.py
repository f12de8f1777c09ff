"""Key–value memory (Llama): neuron i of an MLP fires on key i and writes value i.

    <bos> capital of France    →  Paris       corrupt: <bos> capital of Italy

The key is the last token, so no attention is needed: all heads, the other MLPs and all other neurons of this one are dead. One
neuron of L1MLP for each of 8 countries is 1 on its key (2·(key − ½)) and 0 on all others, and writes its capital, 16 logits
strong. On one example the circuit is one neuron (and the foil's, when the key is exchanged); on the whole task the smallest
faithful neuron circuit is these 8, and n of them are faithful to n/8, since each country occurs equally often.
"""

from __future__ import annotations

from transformers import LlamaConfig

from pytest_circuits.tasks import PromptPair, Task

from . import words
from .host import Host
from .truth import Planted, Truth, all_but, components, neurons

LAYERS, HEADS, NEURONS, STRENGTH = 3, 2, 32, 16.0
MLP = "L1MLP"
CAPITALS = {
    "Austria": "Vienna",
    "Cuba": "Havana",
    "Egypt": "Cairo",
    "France": "Paris",
    "Italy": "Rome",
    "Japan": "Tokyo",
    "Kenya": "Nairobi",
    "Peru": "Lima",
}
PLACES = dict(zip(CAPITALS, (30, 3, 17, 8, 26, 11, 0, 21), strict=True))


def build() -> Planted:
    """The planted model."""
    tokenizer = words.tokenizer(["see", "the", "capital", "of", *CAPITALS, *CAPITALS.values()])
    config = LlamaConfig(
        **words.common(tokenizer),
        hidden_size=64,
        intermediate_size=NEURONS,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=HEADS,
        max_position_embeddings=words.LENGTH,
    )
    host = Host(config, ["one", *(f"key:{w}" for w in CAPITALS), *(f"out:{w}" for w in CAPITALS.values())])
    token = tokenizer.get_vocab()
    for name in token:
        host.embed(token[name], {"one": 1})
    for country, city in CAPITALS.items():
        host.embed(token[country], {"one": 1, f"key:{country}": 1})
        host.unembed(token[city], {f"out:{city}": STRENGTH})
        host.neuron(1, PLACES[country], {f"key:{country}": 2}, 1, {f"out:{city}": 1})
    return Planted("memory", host.model, tokenizer, _task(), _truth())


def _task() -> Task:
    starts = ("capital of", "the capital of", "see the capital of")
    left = {country: list(starts) for country in CAPITALS}
    pairs = []
    for country, other, r in words.pairings(tuple(CAPITALS), len(starts)):
        start = left[country].pop(r.randrange(len(left[country])))
        pairs.append(PromptPair(f"{start} {country}", f"{start} {other}", CAPITALS[country], (CAPITALS[other],)))
    return Task("memory", tuple(pairs), "argmax")


def _truth() -> Truth:
    once, both = {MLP: -STRENGTH}, {MLP: -2 * STRENGTH}
    writers = {CAPITALS[country]: f"L1N{place}" for country, place in PLACES.items()}
    return Truth(
        intact=STRENGTH,
        causal=(MLP,),
        dead=all_but(components(LAYERS, HEADS), (MLP,)),
        zero=once,
        counterfactual=both,
        gradient=once,
        atp=both,
        relp=both,
        eap_ig=both,
        ig_activations=both,
        edges={f"{MLP}>logits": -2 * STRENGTH},
        neurons=writers,
        dead_neurons=all_but(neurons(LAYERS, NEURONS), writers.values()),
    )
