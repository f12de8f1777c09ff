"""Two-hop facts: `The capital of the state containing Dallas is` → ` Austin`."""

from __future__ import annotations

from random import Random
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from ..base import PromptPair
from ..grammar import generated
from ..grammar.draws import Draws

# state: (capital, other cities); only states and cities with one-word capitals and city names that point to one state
STATES = {
    "Alabama": ("Montgomery", "Birmingham Huntsville Mobile"),
    "Alaska": ("Juneau", "Anchorage Fairbanks Sitka"),
    "Arizona": ("Phoenix", "Tucson Mesa Tempe"),
    "California": ("Sacramento", "Oakland Fresno Pasadena"),
    "Colorado": ("Denver", "Boulder Pueblo Durango"),
    "Connecticut": ("Hartford", "Bridgeport Stamford Waterbury"),
    "Florida": ("Tallahassee", "Miami Tampa Orlando"),
    "Georgia": ("Atlanta", "Savannah Macon Valdosta"),
    "Hawaii": ("Honolulu", "Hilo Kailua Lahaina"),
    "Idaho": ("Boise", "Nampa Pocatello Rexburg"),
    "Illinois": ("Springfield", "Chicago Rockford Naperville"),
    "Indiana": ("Indianapolis", "Gary Muncie Evansville"),
    "Kansas": ("Topeka", "Wichita Olathe Salina"),
    "Kentucky": ("Frankfort", "Louisville Lexington Paducah"),
    "Maine": ("Augusta", "Bangor Lewiston Biddeford"),
    "Maryland": ("Annapolis", "Baltimore Frederick Bethesda"),
    "Massachusetts": ("Boston", "Worcester Lowell Brockton"),
    "Michigan": ("Lansing", "Detroit Flint Kalamazoo"),
    "Mississippi": ("Jackson", "Gulfport Biloxi Tupelo"),
    "Montana": ("Helena", "Butte Billings Missoula"),
    "Nebraska": ("Lincoln", "Omaha Kearney Ogallala"),
    "New Hampshire": ("Concord", "Nashua Keene Laconia"),
    "New Jersey": ("Trenton", "Newark Hoboken Paterson"),
    "New York": ("Albany", "Buffalo Syracuse Yonkers"),
    "North Carolina": ("Raleigh", "Charlotte Durham Greensboro"),
    "North Dakota": ("Bismarck", "Fargo Minot Williston"),
    "Ohio": ("Columbus", "Cleveland Dayton Toledo"),
    "Oregon": ("Salem", "Portland Eugene Corvallis"),
    "Pennsylvania": ("Harrisburg", "Philadelphia Pittsburgh Scranton"),
    "Rhode Island": ("Providence", "Pawtucket Cranston Woonsocket"),
    "South Carolina": ("Columbia", "Spartanburg Greenville Sumter"),
    "South Dakota": ("Pierre", "Deadwood Yankton Brookings"),
    "Tennessee": ("Nashville", "Memphis Knoxville Chattanooga"),
    "Texas": ("Austin", "Dallas Houston Lubbock"),
    "Vermont": ("Montpelier", "Burlington Rutland Stowe"),
    "Virginia": ("Richmond", "Norfolk Roanoke Lynchburg"),
    "Washington": ("Olympia", "Seattle Tacoma Spokane"),
    "West Virginia": ("Charleston", "Huntington Morgantown Wheeling"),
    "Wisconsin": ("Madison", "Milwaukee Racine Kenosha"),
    "Wyoming": ("Cheyenne", "Casper Laramie Cody"),
}
CITIES = {city: state for state, (_, cities) in STATES.items() for city in cities.split()}
TEMPLATES = {
    "containing": "The capital of the state containing {city} is",
    "lies": "The capital of the US state in which {city} lies is",
    "whose": "{city} is a city in a state whose capital is",
    "visit": "Anyone in {city} who wants to visit the state capital has to go to",
    "governor": "The governor of the state that {city} belongs to has an office in",
}
Template = Literal["containing", "lies", "whose", "visit", "governor"]


class Parameters(generated.Parameters):
    """Parameters of `capitals`."""

    templates: Annotated[
        Template | Annotated[list[Template], Field(min_length=1)], Field(description="sentences to use: a name or a list")
    ] = Field(default_factory=lambda: list(TEMPLATES))  # type: ignore[arg-type]
    target: Annotated[
        Literal["capital", "state"], Field(description="the answer: the capital, or the state, which is only the first hop")
    ] = "capital"
    foils: Annotated[int, Field(ge=1, le=len(STATES) - 1, description="number of foils: other capitals (or states)")] = 1


class Capitals(generated.Generated):
    """From a US city to the capital of its state, which is not mentioned. 120 cities in 40 states.

    The corrupt prompt has a city of another state, whose capital is the first foil; further foils are capitals of other states. Pairs
    whose clean city lies in the same state form a group: they share the second hop. `target: state` has the same prompts in the same
    order with the state as the answer, to detect a model that stops after the first hop.
    """

    name: ClassVar[str] = "capitals"
    asks: ClassVar[frozenset[str]] = frozenset({"target", "foils"})
    Parameters = Parameters

    def space(self) -> int:
        """Templates × cities."""
        return len(generated.several(self.parameters.templates)) * len(CITIES)

    def groups(self) -> int:
        """One for each state."""
        return len(STATES)

    def draw(self, random: Draws) -> PromptPair:
        """A template with two cities of different states; never degenerate."""
        template = TEMPLATES[random.choice(generated.several(self.parameters.templates))]
        state, other = random.sample(list(STATES), 2)
        clean, corrupt = (template.format(city=random.choice(STATES[name][1].split())) for name in (state, other))
        others = Random(f"{clean} {corrupt}").sample([s for s in STATES if s not in (state, other)], self.parameters.foils - 1)
        return PromptPair(
            clean=clean, corrupt=corrupt, answer=self._answer(state), foils=tuple(map(self._answer, [other, *others])), group=state
        )

    def _answer(self, state: str) -> str:
        return f" {STATES[state][0] if self.parameters.target == 'capital' else state}"
