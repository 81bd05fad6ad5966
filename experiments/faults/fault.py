"""A fault as a value, from its words and back to them.

What is wrong with some words is told in one line: the word, what was expected in its place, and what is spelt nearly
like it. The words that may follow others are known, too, for completion.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import product

from experiments.errors import UserError
from experiments.faults.forms import Clause, Form, forms
from experiments.faults.quantities import QUANTITIES, Value, tell_time
from topo.fabric import Fabric


@dataclass(frozen=True, slots=True)
class Fault:
    """``place`` is a link, a switch or a host by name, empty where there is but one; ``values`` are by their names."""

    form: Form
    place: str
    values: tuple[tuple[str, Value], ...] = ()
    duration_ns: int | None = None

    @property
    def target(self) -> str:
        """``link``, ``switch``, ``host``, ``controller`` or ``vswitchd``."""
        return self.form.target

    @property
    def kind(self) -> str:
        """What is done: ``loss``, ``rx drop``, ``kill``."""
        return self.form.kind

    def get(self, name: str) -> Value | None:
        """A value by its name, such as ``probability`` or ``by``; None if it was left out."""
        return dict(self.values).get(name)

    def __str__(self) -> str:
        """The words, which :func:`parse_fault` reads back as this very fault."""
        words = [self.target, self.place, self.kind]
        for clause in self.form.clauses:
            value = self.get(clause.name)
            if value is not None:
                words += [clause.word or "", QUANTITIES[clause.quantity].tell(value)]
        if self.duration_ns is not None:
            words += ["for", tell_time(self.duration_ns)]
        return " ".join(word for word in words if word)


@dataclass(frozen=True, slots=True)
class _Token:
    """A word of a way to say a form: ``text`` as it stands, or a quantity whose value is called ``text``."""

    text: str
    quantity: str | None = None


@dataclass(slots=True)
class _Reading:
    """A way to say a form, and the values that it has taken from the words so far."""

    form: Form
    tokens: tuple[_Token, ...]
    values: dict[str, Value]


def parse_fault(text: str, fabric: Fabric) -> Fault:
    """The fault that some words say; :class:`UserError` if they say none of this fabric."""
    words = text.split()
    readings = _follow(words, fabric, text)
    at = len(words)
    whole = [reading for reading in readings if len(reading.tokens) == at]
    if not whole:
        raise UserError(f"fault {text!r}: ends too early, expected {_expected(_next(readings, at))}")
    [reading] = whole
    values = reading.values
    place = values.pop("place", "")
    duration = values.pop("for", None)
    assert isinstance(place, str)
    assert duration is None or isinstance(duration, int)
    return Fault(reading.form, place, tuple(values.items()), duration)


def continuations(words: Sequence[str], fabric: Fabric) -> list[str]:
    """The words and names of the fabric that may follow ``words``; none where these are wrong already."""
    try:
        readings = _follow(words, fabric, " ".join(words))
    except UserError:
        return []
    return _candidates(_next(readings, len(words)), fabric)


def _follow(words: Sequence[str], fabric: Fabric, text: str) -> list[_Reading]:
    """The readings that ``words`` may be the beginning of."""
    readings = [_Reading(form, tokens, {}) for form in forms() for tokens in _ways(form)]
    for at, word in enumerate(words):
        before, complaints = readings, []
        readings = []
        for reading in before:
            if len(reading.tokens) <= at:
                continue
            try:
                _take(reading, at, word, fabric)
            except UserError as problem:
                complaints.append(str(problem))
            else:
                readings.append(reading)
        if not readings:
            raise UserError(f"fault {text!r}: {_wrong(word, _next(before, at), complaints, fabric)}")
    return readings


def _take(reading: _Reading, at: int, word: str, fabric: Fabric) -> None:
    token = reading.tokens[at]
    if token.quantity is not None:
        reading.values[token.text] = QUANTITIES[token.quantity].read(word, fabric)
    elif word != token.text:
        raise UserError(f"{word!r}")


def _ways(form: Form) -> Iterator[tuple[_Token, ...]]:
    """All ways to say a form: with each of its optional clauses, and without."""
    place = [_Token("place", form.place)] if form.place else []
    begin = [_Token(form.target), *place, *map(_Token, form.kind.split())]
    for chosen in product(*((True, False) if clause.optional else (True,) for clause in form.clauses)):
        clauses = (clause for clause, taken in zip(form.clauses, chosen, strict=True) if taken)
        yield (*begin, *(token for clause in clauses for token in _tokens(clause)))


def _tokens(clause: Clause) -> Iterator[_Token]:
    if clause.word is not None:
        yield _Token(clause.word)
    yield _Token(clause.name, clause.quantity)


def _next(readings: Sequence[_Reading], at: int) -> list[_Token]:
    """What may stand at a place, each once; nothing where every reading is over."""
    return list(dict.fromkeys(reading.tokens[at] for reading in readings if len(reading.tokens) > at))


def _candidates(tokens: Sequence[_Token], fabric: Fabric) -> list[str]:
    """All words that would do, as far as there is a list of them."""
    found: list[str] = []
    for token in tokens:
        found += QUANTITIES[token.quantity].names(fabric) if token.quantity else [token.text]
    return list(dict.fromkeys(found))


def _expected(tokens: Sequence[_Token]) -> str:
    told = dict.fromkeys(QUANTITIES[token.quantity].example if token.quantity else token.text for token in tokens)
    *others, last = told or ("nothing more",)
    return f"{', '.join(others)} or {last}" if others else last


def _wrong(word: str, tokens: Sequence[_Token], complaints: Sequence[str], fabric: Fabric) -> str:
    """What is wrong with ``word``, where one of ``tokens`` was expected, each of which has its complaint."""
    wanted = {QUANTITIES[token.quantity].example if token.quantity else None for token in tokens}
    near = get_close_matches(word, _candidates(tokens, fabric))
    hint = f"; did you mean {' or '.join(near)}?" if near else ""
    if len(wanted) == 1 and None not in wanted:
        return f"{complaints[0]}{hint}"
    return f"{word!r}: expected {_expected(tokens)}{hint}"
