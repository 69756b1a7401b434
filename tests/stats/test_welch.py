"""Welch's tests: equal to scipy, also in the tails and where a group does not vary."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from vlmfair.stats.moments import Factor
from vlmfair.stats.welch import welch_tests

quickly = settings(max_examples=25, deadline=None)


def factor_of(sizes: list[int], test: str) -> Factor:
    return Factor(np.repeat(np.arange(len(sizes)), sizes), len(sizes), test)  # type: ignore[arg-type]


def scipy_results(values: np.ndarray, factor: Factor) -> tuple[np.ndarray, np.ndarray]:
    found = []
    for column in values.T:
        groups = [column[factor.codes == group] for group in range(factor.groups)]
        test = stats.ttest_ind if factor.test == "welch_t" else stats.f_oneway
        with np.errstate(all="ignore"):
            found.append(tuple(test(*groups, equal_var=False))[:2])
    statistic, p = np.array(found).T
    return statistic, p


def assert_like_scipy(values: np.ndarray, factor: Factor) -> None:
    ours = welch_tests(values, factor)
    statistic, p = scipy_results(values, factor)
    np.testing.assert_allclose(ours.statistic, statistic, rtol=1e-9)
    # Below 1e-300 doubles lose digits: there both must merely be that small.
    np.testing.assert_allclose(ours.p, p, rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize("sizes", [[40, 60], [510] * 2, [2, 3]])
def test_t_equals_scipy(sizes: list[int]) -> None:
    random = np.random.default_rng(1)
    values = random.beta(2, 5, (sum(sizes), 50))
    assert_like_scipy(values, factor_of(sizes, "welch_t"))


@pytest.mark.parametrize("sizes", [[51] * 7, [144] * 10, [2, 3, 40], [30, 30]])
def test_anova_equals_scipy(sizes: list[int]) -> None:
    random = np.random.default_rng(2)
    values = random.beta(2, 5, (sum(sizes), 50))
    assert_like_scipy(values, factor_of(sizes, "welch_anova"))


@pytest.mark.parametrize("test", ["welch_t", "welch_anova"])
def test_equals_scipy_down_to_where_p_underflows(test: str) -> None:
    # Gaps from 0 to 5 standard deviations at 2 x 500: p from 1 down to below 1e-308, that is 0.
    factor = factor_of([500, 500], test)
    random = np.random.default_rng(3)
    gaps = np.linspace(0, 0.5, 61) * (factor.codes == 1)[:, None]
    values = 0.4 + gaps + random.normal(0, 0.1, (1000, 61))
    assert_like_scipy(values, factor)
    p = welch_tests(values, factor).p
    assert p.min() == 0
    assert ((p > 0) & (p < 1e-200)).any()


@pytest.mark.parametrize("test", ["welch_t", "welch_anova"])
def test_digits_survive_when_nearly_all_answers_agree(test: str) -> None:
    # P("Yes") of 0.99 with a spread in the third digit, as a saturated model gives it.
    random = np.random.default_rng(4)
    values = 0.99 + 1e-3 * random.normal(0, 1, (400, 20))
    assert_like_scipy(values, factor_of([200, 200], test))


@pytest.mark.parametrize(
    ("test", "groups"),
    [
        ("welch_t", ([0.25, 0.25], [0.25, 0.25])),  # all the same: NaN
        ("welch_t", ([0.25, 0.25], [0.5, 0.5])),  # two constants: infinite, p = 0
        ("welch_t", ([0.25, 0.25], [0.5, 0.75])),  # one constant: an ordinary test
        ("welch_t", ([0.25], [0.5, 0.75])),  # a group of one: NaN
        ("welch_anova", ([0.25, 0.25], [0.25, 0.25], [0.25, 0.25])),  # all the same: NaN
        ("welch_anova", ([0.25, 0.25], [0.5, 0.5], [0.5, 0.5])),  # constants: infinite, p = NaN
        ("welch_anova", ([0.25, 0.25], [0.5, 0.75], [0.5, 1.0])),  # one constant: NaN
        ("welch_anova", ([0.25], [0.5, 0.75], [0.5, 1.0])),  # a group of one: NaN
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore::scipy.stats.DegenerateDataWarning")
def test_groups_that_do_not_vary_give_what_scipy_gives(
    test: str, groups: tuple[list[float], ...]
) -> None:
    values = np.concatenate(groups)[:, None]
    factor = factor_of([len(group) for group in groups], test)
    statistic, p = scipy_results(values, factor)
    ours = welch_tests(values, factor)
    np.testing.assert_array_equal(ours.statistic, statistic)
    np.testing.assert_array_equal(ours.p, p)


def test_a_constant_that_is_no_binary_fraction_does_not_vary() -> None:
    # The mean of three 0.1 is not 0.1, so a naive variance is 1e-34 and the statistic is huge.
    values = np.array([0.1, 0.1, 0.1, 0.1, 0.1, 0.1])[:, None]
    assert np.isnan(welch_tests(values, factor_of([3, 3], "welch_t")).p).all()


problems = st.integers(0, 2**32 - 1).map(np.random.default_rng)
group_sizes = st.lists(st.integers(2, 20), min_size=2, max_size=6)


@given(random=problems, sizes=group_sizes)
@quickly
def test_order_of_images_changes_nothing(random: np.random.Generator, sizes: list[int]) -> None:
    factor = factor_of(sizes, "welch_anova")
    values = random.beta(1, 3, (sum(sizes), 4))
    order = random.permutation(len(values))
    shuffled = Factor(factor.codes[order], factor.groups, factor.test)
    first, second = welch_tests(values, factor), welch_tests(values[order], shuffled)
    np.testing.assert_allclose(first.statistic, second.statistic, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(first.p, second.p, rtol=1e-8)


@given(random=problems, sizes=group_sizes, shift=st.floats(-1, 1), scale=st.floats(0.1, 10))
@quickly
def test_a_constant_or_a_unit_changes_no_test(
    random: np.random.Generator, sizes: list[int], shift: float, scale: float
) -> None:
    factor = factor_of(sizes, "welch_anova")
    values = random.beta(2, 3, (sum(sizes), 4))
    first, second = welch_tests(values, factor), welch_tests(values * scale + shift, factor)
    np.testing.assert_allclose(first.p, second.p, rtol=1e-6)


@given(random=problems, sizes=group_sizes)
@quickly
def test_names_of_groups_do_not_matter(random: np.random.Generator, sizes: list[int]) -> None:
    factor = factor_of(sizes, "welch_anova")
    values = random.beta(2, 3, (sum(sizes), 4))
    renamed = Factor(random.permutation(len(sizes))[factor.codes], factor.groups, factor.test)
    first, second = welch_tests(values, factor), welch_tests(values, renamed)
    np.testing.assert_allclose(first.p, second.p, rtol=1e-8)


@given(random=problems, sizes=st.tuples(st.integers(2, 20), st.integers(2, 20)))
@quickly
def test_anova_of_two_groups_is_the_squared_t(
    random: np.random.Generator, sizes: tuple[int, int]
) -> None:
    values = random.beta(2, 3, (sum(sizes), 4))
    t = welch_tests(values, factor_of(list(sizes), "welch_t"))
    anova = welch_tests(values, factor_of(list(sizes), "welch_anova"))
    np.testing.assert_allclose(anova.statistic, t.statistic**2, rtol=1e-8)
    np.testing.assert_allclose(anova.p, t.p, rtol=1e-7)
    np.testing.assert_allclose(anova.df2, t.df2, rtol=1e-8)


def test_rows_without_a_group_do_not_count() -> None:
    values = np.random.default_rng(5).beta(2, 3, (30, 3))
    codes = np.repeat([0, 1, -1], 10)
    with_others = welch_tests(values, Factor(codes, 2, "welch_t"))
    alone = welch_tests(values[:20], Factor(codes[:20], 2, "welch_t"))
    np.testing.assert_array_equal(with_others.p, alone.p)
