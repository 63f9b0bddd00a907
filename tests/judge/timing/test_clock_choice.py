"""The choice of the clock: honest events count, and a forged claim gains less than the agreement's share."""

import pytest

from grader.judge.timing.clock_choice import AGREEMENT, Reading, claims_less, counted, enough, held_against

QUIET = [1.0, 1.001, 0.999, 1.0, 1.002, 1.0, 0.998]
NOISY = [1.0, 1.06, 1.03, 1.04, 1.09, 1.002, 1.04]  # of the arbiter's clock: noise only adds


@pytest.mark.parametrize("arbiter", [QUIET, NOISY])
def test_events_of_honest_work_count(arbiter):
    """In quiet and in noise the figure is that of the events, which are the work's own."""
    found = counted([Reading(wall, 1.0) for wall in arbiter])
    assert {(one.seconds, one.clock) for one in found} == {(1.0, "events")}


@pytest.mark.parametrize("claim", [0.5, 0.9, 0.985, None])
def test_a_claim_of_less_does_not_count(claim):
    """If events claim less than the clock allows, or no valid time, the arbiter's time counts."""
    found = counted([Reading(wall, claim) for wall in NOISY])
    assert [one.seconds for one in found] == NOISY
    assert {one.clock for one in found} == {"arbiter"}


def test_what_forging_can_gain_is_the_agreement():
    """The best that a forger gets is a claim just within the agreement, in each round."""
    best = min(one.seconds for one in counted([Reading(wall, (1 - AGREEMENT) * 1.001) for wall in QUIET]))
    assert best >= (1 - AGREEMENT) * 0.998


def test_events_are_held_against_one_of_the_fastest_rounds():
    """A spell of noise may last for most of the rounds; a single fast one may be a slip of the clock."""
    spell = [Reading(wall, 1.0) for wall in [1.02] * 12 + [1.003, 1.001]]
    assert held_against(spell) == 1.003
    assert {one.clock for one in counted(spell)} == {"events"}
    slip = [Reading(wall, 0.98) for wall in [1.02] * 13 + [0.98]]
    assert {one.clock for one in counted(slip)} == {"arbiter"}
    assert held_against([Reading(float(n), 1.0) for n in range(1, 29)]) == 4.0
    assert held_against([Reading(1.0, 1.0)]) == 1.0


@pytest.mark.parametrize("fast", [2, 4, 9])
@pytest.mark.parametrize("rounds", [7, 28])
def test_a_trick_that_works_in_few_rounds_counts_in_few(rounds, fast):
    """No round that is faster than the median by more than the host's jitter serves as reference."""
    fast = min(fast, (rounds - 1) // 2)
    walls = [0.8] * fast + [1.0] * (rounds - fast)
    found = [one.seconds for one in counted([Reading(wall, 0.8, jitter_s=0.01) for wall in walls])]
    assert found == walls
    forged = [one.seconds for one in counted([Reading(wall, 0.986, jitter_s=0.01) for wall in walls])]
    assert min(forged[fast:]) >= (1 - AGREEMENT) * 0.99, "the jitter and the agreement are what it may gain"
    assert not enough([Reading(wall, 0.8, jitter_s=0.01) for wall in walls])


def test_a_spell_within_the_hosts_jitter_takes_no_events_away():
    """Most rounds longer by what the host varies by as a rule: the fast ones tell."""
    spell = [Reading(wall, 1.0, jitter_s=0.012) for wall in [1.012] * 5 + [1.001] * 2]
    assert {one.clock for one in counted(spell)} == {"events"}
    assert enough(spell)


def test_an_absurd_claim_does_not_count():
    """Events that claim hours are not believed either: they would make the interval as wide as the forger likes."""
    assert {one.clock for one in counted([Reading(1.0, 1e5)] * 7)} == {"arbiter"}


def test_events_of_a_worker_of_ours_count_whatever_the_noise():
    """A baseline's events are trusted."""
    assert [one.seconds for one in counted([Reading(1.5, 1.0, trusted=True)] * 3)] == [1.0] * 3


def test_more_rounds_are_wanted_until_the_clocks_agree_in_some():
    """The clocks must agree in one of seven rounds, and in two at least. Otherwise a forger only has to wait."""
    agreed, noisy = Reading(1.0, 1.0), Reading(1.05, 1.0)
    assert enough([agreed] * 2 + [noisy] * 5)
    assert enough([agreed] * 4 + [noisy] * 24)
    assert not enough([agreed] + [noisy] * 6)
    assert not enough([agreed] * 3 + [noisy] * 25)
    assert not enough([Reading(1.0, None)] * 7)


def test_no_rounds_count_as_none():
    """Where nothing was timed nothing counts."""
    assert counted([]) == []


def _claims(late, claim):
    """Return the findings for a clock that is `late` for everybody and a claim of this share of its time."""
    base = [Reading(1.0 + late, 1.0, trusted=True)] * 7
    own = [Reading(1.0 + late, claim)] * 7
    return claims_less({"a": {"submission": own, "torch": base}})


@pytest.mark.parametrize(("late", "claim", "kinds"), [(0, 0.8, ["clock"]), (0.4, 1.0, []), (0.4, 0.8, ["clock"])])
def test_only_events_that_claim_less_than_the_baselines_explain_are_reported(late, claim, kinds):
    """While others use the GPU, the arbiter's clock is late for the baselines, too, which do not forge their events."""
    assert [finding.kind for finding in _claims(late, claim)] == kinds


def test_events_that_claim_less_are_reported_without_a_baseline():
    assert [finding.kind for finding in claims_less({"a": {"submission": [Reading(1.0, 0.5)] * 7}})] == ["clock"]
