"""Copy head (Llama, grouped-query attention): one head finds the marked word and copies it to the output.

    <bos> fig APPLE pear =    →  apple        corrupt: <bos> FIG apple pear =  (the mark moves)

L1H2 attends from every position to the marked one (to <bos>, whose value is zero, where there is none yet), reads which fruit
stands there and writes it into the features that the unembedding reads, 16 logits strong. Everything else is dead. H3 of the
same layer shares its keys and values. The head's output acts linearly on the logits, so every method is exact: replacing it
with zero costs 16, with the corrupt prompt's value 32.
"""

from __future__ import annotations

from transformers import LlamaConfig

from pytest_circuits.tasks import PromptPair, Task

from . import fruits, words
from .fruits import FRUITS, STRENGTH, marked
from .host import Host
from .truth import Planted, Truth, all_but, components, neurons

LAYERS, HEADS, NEURONS = 2, 4, 32
HEAD = "L1H2"


def build() -> Planted:
    """The planted model."""
    tokenizer = fruits.tokenizer()
    config = LlamaConfig(
        **words.common(tokenizer),
        hidden_size=64,
        intermediate_size=NEURONS,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        num_key_value_heads=2,
        max_position_embeddings=words.LENGTH,
    )
    host = Host(config, fruits.features())
    fruits.furnish(host, tokenizer.get_vocab())
    fruits.fetch(host, 1, 2, "out")
    return Planted("copy_head", host.model, tokenizer, _task(), _truth())


def _task() -> Task:
    pairs = []
    for answer, foil, r in words.pairings(FRUITS, 3):
        rest = [w for w in FRUITS if w not in (answer, foil)]
        row = [answer, foil, *r.sample(rest, r.choice((1, 2, 3)))]
        r.shuffle(row)
        clean, corrupt = (" ".join(marked(w) if w == chosen else w for w in row) + " =" for chosen in (answer, foil))
        pairs.append(PromptPair(clean, corrupt, answer, (foil,)))
    return Task("copy_head", tuple(pairs), "argmax")


def _truth() -> Truth:
    once, both = {HEAD: -STRENGTH}, {HEAD: -2 * STRENGTH}
    return Truth(
        intact=STRENGTH,
        causal=(HEAD,),
        dead=all_but(components(LAYERS, HEADS), (HEAD,)),
        zero=once,
        counterfactual=both,
        gradient=once,
        atp=both,
        relp=both,
        eap_ig=both,
        ig_activations=both,
        edges={f"{HEAD}>logits": -2 * STRENGTH},
        dead_neurons=neurons(LAYERS, NEURONS),
    )
