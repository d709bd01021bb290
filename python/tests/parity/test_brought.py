"""Networks made here as users make them: each agrees with onnxruntime or is refused with every reason."""

from __future__ import annotations

from operator import attrgetter

import pytest

from helpers.brought import Brought, check_modes, compiled
from helpers.odd_models import ODD_REFUSED, odd_models
from helpers.scikit_models import REFUSED, scikit_models
from helpers.times import marked

MODELS = [*scikit_models(), *odd_models()]

name_of = attrgetter("name")

#: Those that a test needs more than five seconds for.
LONG = {"logistic regression on digits"}


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("brought", marked(MODELS, LONG, name_of), ids=name_of)
def test_every_network_agrees_or_is_refused_with_every_reason(brought: Brought) -> None:
    refused = brought.name in REFUSED or brought.name in ODD_REFUSED
    assert (compiled(brought) is None) == refused


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("brought", marked(MODELS, LONG, name_of), ids=name_of)
def test_integers_are_as_precise_as_asked_in_each_mode(brought: Brought) -> None:
    check_modes(brought, secure=False)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("brought", MODELS[::12], ids=name_of)
def test_secure_runs_of_some_equal_the_integers(brought: Brought) -> None:
    check_modes(brought, secure=True)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("brought", MODELS, ids=name_of)
def test_secure_runs_of_all_equal_the_integers(brought: Brought) -> None:
    check_modes(brought, secure=True)


def test_there_are_many_and_each_has_a_name() -> None:
    names = [brought.name for brought in MODELS]
    assert len(set(names)) == len(names) >= 50
