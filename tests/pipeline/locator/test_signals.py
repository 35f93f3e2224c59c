from pipeline.locator import TaskQuery, build_index, locate
from pipeline.locator.query import QueryWords
from pipeline.locator.ranking import rank
from pipeline.locator.weights import LINK_SIGNALS, SIGNALS
from tests.pipeline.locator.repositories import make


def signals(snapshot, question, **fields):
    index = build_index(snapshot)
    return index, rank(index, QueryWords.of(TaskQuery(question=question, **fields)))


def value(index, ranking, name, path):
    return float(ranking.signals[name][index.position[path]])


SCRIPT = 'if __name__ == "__main__":\n    print("train")\n'


def test_spelled_out_names_meet_the_acronyms_of_paths(tmp_path):
    snapshot = make(tmp_path, {"ippo_mpe.py": SCRIPT, "ippo_smax.py": SCRIPT, "other.py": SCRIPT})
    index, ranking = signals(snapshot, "How well does IPPO do in the Multi-Particle Environment?")
    assert value(index, ranking, "stem", "ippo_mpe.py") == 1.0
    assert value(index, ranking, "unsaid", "ippo_mpe.py") == 0.0
    assert value(index, ranking, "unsaid", "ippo_smax.py") > 0.0


def test_the_projects_own_name_says_nothing(tmp_path):
    package = {f"curvy/{name}.py": f"def {name}():\n    return 1\n" for name in ("kernels", "metrics", "shapes")}
    snapshot = make(tmp_path, {**package, "curvy/__init__.py": "", "notebooks/demo.py": SCRIPT})
    index, ranking = signals(snapshot, "Is the smooth diagram of curvy better?")
    assert index.own_names == {"curvy"}
    assert value(index, ranking, "path", "curvy/kernels.py") == 0.0


def test_one_common_word_in_a_path_is_no_full_match(tmp_path):
    names = ["a", "b", "c", "d"]
    snapshot = make(tmp_path, {f"common_{name}.py": SCRIPT for name in names})
    index, ranking = signals(snapshot, "Is the common case fast?")
    assert 0.0 < value(index, ranking, "path", "common_a.py") < 0.5


HYDRA = """import hydra


@hydra.main(config_path="conf", config_name="config")
def main(cfg):
    print(cfg)


if __name__ == "__main__":
    main()
"""


def test_hydra_leads_to_its_default_what_that_composes_and_what_can_be_chosen(tmp_path):
    snapshot = make(
        tmp_path,
        {
            "run.py": HYDRA,
            "conf/config.yaml": "defaults:\n  - task: vmas/balance  # the default\n  - _self_\n\nseed: 1\n",
            "conf/task/vmas/balance.yaml": "agents: 3\n",
            "conf/task/vmas/wheel.yaml": "agents: 4\n",
            "elsewhere.yaml": "agents: 5\n",
        },
    )
    index, ranking = signals(snapshot, "How does the number of agents change the balance task?")
    assert index.links.configs["run.py"] == {"conf/config.yaml"}
    assert index.links.configs["conf/config.yaml"] == {"conf/task/vmas/balance.yaml"}
    assert "conf/task/vmas/wheel.yaml" in index.links.options["run.py"]
    assert value(index, ranking, "option_of", "conf/task/vmas/wheel.yaml") > 0
    assert value(index, ranking, "config_of", "conf/task/vmas/balance.yaml") > 0
    assert value(index, ranking, "config_of", "elsewhere.yaml") == 0


def test_a_configuration_in_python_is_a_configuration(tmp_path):
    snapshot = make(
        tmp_path,
        {
            "tools/diagnose.py": 'CONFIG = "./config/tabular.py"\n\nprint(CONFIG)\n',
            "config/tabular.py": 'dataset = "tabular"\nepochs = 3\n',
        },
    )
    index = build_index(snapshot)
    assert index.links.configs["tools/diagnose.py"] == {"config/tabular.py"}
    assert index.static["config"][index.position["config/tabular.py"]] == 1.0
    assert index.static["runnable"][index.position["tools/diagnose.py"]] == 1.0
    assert index.static["runnable"][index.position["config/tabular.py"]] == 0.0


def test_scripts_for_other_stages_join_the_chain_and_the_narrow_chain_is_the_next_one(tmp_path):
    body = '"""{} the glacier flow model."""\n\nif __name__ == "__main__":\n    print("glacier flow accuracy")\n'
    files = {f"glacier/{stage}.py": body.format(stage) for stage in ("train", "test")}
    snapshot = make(tmp_path, {**files, "setup.py": "x = 1\n", "volcano/run.py": 'print("volcano")\n'})
    query = TaskQuery(question="How accurate is the glacier flow model?", method="Train and test the glacier model.")
    found = locate(build_index(snapshot), query)
    assert found.chain is not None
    assert found.chain.entries == ("glacier/train.py", "glacier/test.py")
    assert len(found.alternatives[0].entries) == 1


def test_every_weight_has_the_sign_that_its_reason_allows():
    assert set(LINK_SIGNALS) <= SIGNALS.keys()
    for name, signal in SIGNALS.items():
        for weight in (signal.prior, signal.first, signal.weight):
            assert weight * signal.sign >= 0, name
