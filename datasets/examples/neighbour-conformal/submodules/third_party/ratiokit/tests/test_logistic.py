import numpy as np

from ratiokit import LogisticRatio


def test_equal_samples_have_ratio_one():
    x = np.random.default_rng(0).standard_normal((200, 3))
    np.testing.assert_allclose(LogisticRatio().fit(x, x)(x), 1.0, atol=1e-6)


def test_ratio_grows_towards_the_target():
    rng = np.random.default_rng(1)
    ratio = LogisticRatio().fit(rng.normal(0, 1, (500, 1)), rng.normal(1, 1, (500, 1)))
    assert ratio(np.array([[2.0]]))[0] > ratio(np.array([[-1.0]]))[0]
