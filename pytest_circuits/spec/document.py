"""The grammar of a spec (version 1) as types. Both the validation and the JSON Schema come from these models.

What depends on registries (a property's parameters, a built-in task's) has its own model next to its code.
"""

from __future__ import annotations

import keyword
import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic.json_schema import SkipJsonSchema

from ..tasks import files

VERSION = 1
TOP_LEVEL = ("version", "models", "tasks", "defaults", "claims")
BOUNDS = ("at_least", "at_most", "within")
MODEL_KINDS = ("path", "loader", "fixture")
NOT_OF_SERIES = ("loader", "fixture", "revision")  # keys of a model that do not go with checkpoints
TASK_KINDS = ("builtin", "file", "loader", "fixture")
REFERENCE = r"^[A-Za-z_][\w.]*:[A-Za-z_][\w.]*$"
NAME = r"^[^\s\[\]/\\:]+$"
MODEL_NAME = r"^[^\s\[\]/\\:=]+$"  # `--circuits-model NAME=PATH` splits at the first "="
NAME_RULE = "names hold no whitespace, colons, slashes, backslashes or square brackets, since node ids are made of them"


def _reference(text: str) -> str:
    if not re.fullmatch(REFERENCE, text):
        raise ValueError(f"must have the form 'package.module:function', got {text!r}")
    return text


def _identifier(text: str) -> str:
    if not text.isidentifier() or keyword.iskeyword(text):
        raise ValueError(f"must be the name of a pytest fixture, got {text!r}")
    return text


Text = Annotated[str, Field(min_length=1)]
Reference = Annotated[str, AfterValidator(_reference), Field(json_schema_extra={"pattern": REFERENCE})]
FixtureName = Annotated[str, AfterValidator(_identifier), Field(json_schema_extra={"pattern": r"^[^\W\d]\w*$"})]
Number = Annotated[float, Field(allow_inf_nan=False)]
Dtype = Literal["bfloat16", "float16", "float32", "float64"]
Absent = SkipJsonSchema[None]


class Grammar(BaseModel):
    """Base of the grammar: unknown keys are refused and nothing is converted."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class CheckpointEntry(Grammar):
    """A checkpoint of a series: a directory, or a revision of a hub id."""

    path: Annotated[Text | Absent, Field(description="A directory, relative to the model's path or to this file, or a hub id.")] = None
    revision: Annotated[Text | Absent, Field(description="Branch, tag or commit of the hub id.")] = None
    at: Annotated[Number | Absent, Field(description="Where it stands in the series, such as a training step or a seed.")] = None


class Revisions(Grammar):
    """Revisions of the model's hub id, in order."""

    revisions: Annotated[list[Text], Field(min_length=1, description="Branches, tags or commits.")]


class Range(Grammar):
    """Those directories that a pattern matches whose number lies in a range, ends included."""

    pattern: Annotated[Text, Field(description="A pattern such as ../run/step-*; the number is the one in the directory's name.")]
    first: Annotated[Number | Absent, Field(description="The lowest number, such as a training step.")] = None
    last: Annotated[Number | Absent, Field(description="The highest number.")] = None


Checkpoints = Text | Annotated[list[Text | CheckpointEntry], Field(min_length=1)] | Revisions | Range


class ModelEntry(Grammar):
    """A model: a directory or hub id, a callable or a pytest fixture that returns the model and its tokenizer, or a series of models."""

    path: Annotated[Text | Absent, Field(description="A directory, relative to this file, or a hub id such as org/name.")] = None
    checkpoints: Annotated[
        Checkpoints | Absent,
        Field(
            description="Makes the entry a series of models: directories (a list, or a pattern such as ../run/step-*), relative to "
            "`path` or to this file; those of a pattern within a range of steps; or revisions of the hub id in `path`."
        ),
    ] = None
    loader: Annotated[Reference | Absent, Field(description="A callable 'package.module:function', in place of `path`.")] = None
    fixture: Annotated[
        FixtureName | Absent,
        Field(description="A pytest fixture that returns a directory, a hub id, a model, or a model and its tokenizer."),
    ] = None
    revision: Annotated[Text | Absent, Field(description="Branch, tag or commit of a hub id.")] = None
    dtype: Annotated[Dtype | Absent, Field(description="Type of the weights; the checkpoint's own by default.")] = None
    device: Annotated[Text | Absent, Field(description="Such as cpu, cuda or cuda:1.")] = None


class FileTask(files.Parameters):
    """A task read from a file: one JSON object a line with clean, corrupt, answer, and foil or choices."""

    file: Annotated[Text, Field(description="a JSONL file, relative to this spec")]


class LoaderTask(BaseModel):
    """A task from a Python callable; every other key is passed to it by name."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)

    loader: Annotated[Reference, Field(description="A callable 'package.module:function' that returns prompt pairs.")]


class FixtureTask(Grammar):
    """A task from a pytest fixture."""

    fixture: Annotated[FixtureName, Field(description="A pytest fixture that returns a Task, or prompt pairs.")]


class ClaimKeys(Grammar):
    """A claim, without its property: the bound, the expected verdict, pytest marks and the models that it is about."""

    at_least: Annotated[Number | Absent, Field(description="Certified when the whole interval is at or above this.")] = None
    at_most: Annotated[Number | Absent, Field(description="Certified when the whole interval is at or below this.")] = None
    within: Annotated[list[Number], Field(min_length=2, max_length=2)] | Absent = Field(
        default=None, description="Certified when the whole interval lies between the two numbers."
    )
    expect: Annotated[
        Literal["certified", "refuted", "inconclusive", "invalid", "measured"],
        Field(description="The verdict with which the test passes: refuted makes a negative control, measured (any but invalid) a study."),
    ] = "certified"
    marks: Annotated[
        list[Text | dict[str, dict[str, Any] | list[Any]]],
        Field(description="pytest marks: a name, or {name: {keyword: argument}}, or {name: [arguments]}."),
    ] = []
    model: Annotated[
        Text | Absent, Field(description="The only model that the claim is about, or one checkpoint, NAME@LABEL; all by default.")
    ] = None
    models: Annotated[list[Text], Field(min_length=1)] | Absent = Field(
        default=None, description="The models, or checkpoints NAME@LABEL, that the claim is about; all by default."
    )
    description: Annotated[str, Field(description="What the claim means, for reports.")] = ""


CLAIM_KEYS = tuple(ClaimKeys.model_fields)


def name_problem(name: str) -> str | None:
    """Why a claim, model or task cannot be called this, or None."""
    if not name:
        return f"an empty name; {NAME_RULE}"
    if re.fullmatch(NAME, name) and name.isprintable():
        return None
    return f"the name {name!r} is not allowed; {NAME_RULE}"
