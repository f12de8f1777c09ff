"""Strategies for hypothesis: prompt pairs, component sets, circuits; and `for_all`, which measures what it draws in batches.

```python
from hypothesis import given
from pytest_circuits import strategies

@given(pair=strategies.prompt_pairs("ioi"))
def test_pairs_have_two_names(pair): ...
```

Everything is drawn through primitives of hypothesis, so failing examples shrink: to the first template and words of a task, the smallest
numbers, the fewest components. No other part of the package imports hypothesis at the top of a module.
"""

from __future__ import annotations

try:
    import hypothesis  # noqa: F401
except ImportError as problem:
    raise ImportError(f"pytest_circuits.strategies needs the package hypothesis: pip install hypothesis ({problem})") from problem

from .decorator import for_all
from .pairs import prompt_pairs, template_pairs
from .sets import circuits, component_sets

__all__ = ["circuits", "component_sets", "for_all", "prompt_pairs", "template_pairs"]
