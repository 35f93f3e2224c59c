from pipeline.locator import TaskQuery, build_index, locate
from pipeline.locator.query import QueryWords
from pipeline.locator.ranking import rank
from pipeline.locator.text import stem
from pipeline.locator.weights import LATER_SIGNALS, SIGNALS
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
    assert set(LATER_SIGNALS) <= SIGNALS.keys()
    for name, signal in SIGNALS.items():
        for weight in (signal.prior, signal.first, signal.weight):
            assert weight * signal.sign >= 0, name


def test_what_many_wrappers_run_is_general_and_what_one_runs_is_not(tmp_path):
    wrappers = {
        f"scripts/{name}.sh": f"python run.py --data {name}\n" for name in ("ecl", "solar", "weather", "traffic")
    }
    snapshot = make(tmp_path, {"run.py": SCRIPT, "once.py": SCRIPT, "scripts/once.sh": "python once.py\n", **wrappers})
    index = build_index(snapshot)
    general = index.static["general"]
    assert general[index.position["run.py"]] > 0.5
    assert general[index.position["once.py"]] == general[index.position["scripts/ecl.sh"]] == 0.0


def test_demos_teach_and_words_that_only_contain_the_word_do_not(tmp_path):
    paths = ("demo/tabular.py", "tutorials/1.py", "src/quickstart.py", "demography.py", "tools/run.py")
    index = build_index(make(tmp_path, dict.fromkeys(paths, SCRIPT)))
    teaching = {path for path in paths if index.static["teaching"][index.position[path]]}
    assert teaching == {"demo/tabular.py", "tutorials/1.py", "src/quickstart.py"}


def test_fetching_data_is_set_up_whatever_it_is_written_in(tmp_path):
    index = build_index(make(tmp_path, {"data/download_d4rl.py": SCRIPT, "Get_Data.sh": "wget x\n", "run.py": SCRIPT}))
    setup = {facts.path for facts, value in zip(index.facts, index.static["setup"], strict=True) if value}
    assert setup == {"data/download_d4rl.py", "Get_Data.sh"}


def test_words_that_all_candidates_share_do_not_tell_them_apart(tmp_path):
    body = SCRIPT + "# the accuracy of the {} on spirals\n"
    files = {f"{name}.py": body.format(word) for name, word in (("a", "perceptron"), ("b", "forest"), ("c", "kernel"))}
    index, ranking = signals(make(tmp_path, files), "Is the accuracy of the forest on spirals the best?")
    assert value(index, ranking, "telling", "b.py") == 1.0
    assert value(index, ranking, "telling", "a.py") < 0.5


def test_a_task_that_asks_how_something_is_done_is_also_answered_by_a_part(tmp_path):
    files = {
        "pkg/__init__.py": "",
        "pkg/graph.py": "def draw():\n    return 1\n",
        "run.py": "import pkg.graph\n" + SCRIPT,
    }
    for question, expected in (
        ("How can you draw a graph?", 1.0),
        ("How to draw a graph?", 1.0),
        ("How does drawing compare with printing?", 0.0),
        ("Is drawing a graph slow?", 0.0),
    ):
        index, ranking = signals(make(tmp_path, files), question)
        assert value(index, ranking, "explains", "pkg/graph.py") == expected
        assert value(index, ranking, "explains", "run.py") == 0.0


def test_a_word_that_the_task_repeats_counts_more(tmp_path):
    files = {"solar.py": SCRIPT + "# solar\n", "traffic.py": SCRIPT + "# traffic\n"}
    method = "Solar is measured, as solar was before. Autoformer used traffic."
    index, ranking = signals(make(tmp_path, files), "Is it better?", method=method)
    assert value(index, ranking, "content", "solar.py") > value(index, ranking, "content", "traffic.py") > 0


TEST_BY_NAME = (
    'import torch\n\n\ndef evaluate(model):\n    return model\n\n\nif __name__ == "__main__":\n    evaluate(torch)\n'
)


def test_a_script_named_test_that_tests_nothing_is_no_test(tmp_path):
    snapshot = make(
        tmp_path,
        {
            "adding_problem/add_test.py": TEST_BY_NAME,  # evaluates a model on the adding problem
            "test_pairs.py": "import argparse\n\nargparse.ArgumentParser()\n\n\ndef test_can_reverse(pair):\n    return pair\n",
            "adding_problem/model_test.py": "from absl.testing import absltest\n\n\nclass Model(absltest.TestCase):\n    x = 1\n",
            "pkg/test_sums.py": "def test_sum():\n    assert 1 + 1 == 2\n",
            "tests/helpers.py": "SIZE = 3\n",
        },
    )
    index, ranking = signals(snapshot, "Does the model solve the adding problem?")
    tests = {facts.path: value(index, ranking, "tests", facts.path) for facts in index.facts}
    assert tests == {
        "adding_problem/add_test.py": 0.0,
        "test_pairs.py": 0.0,
        "adding_problem/model_test.py": 1.0,
        "pkg/test_sums.py": 1.0,
        "tests/helpers.py": 1.0,
    }


def test_a_path_that_is_filled_in_when_it_runs_leads_to_the_configurations_that_fit(tmp_path):
    chooses = "import sys\n\nfrom lib import load\n\ncfg = load(f'./config/rare_{sys.argv[1]}.py')\nprint(cfg)\n"
    snapshot = make(
        tmp_path,
        {
            "tools/rare.py": chooses,
            "lib.py": "def load(path):\n    return path\n",
            "config/rare_iris.py": "name = 'iris'\nname += '_rare'\n",  # built up, and still a configuration
            "config/rare_cars.py": "name = 'cars'\n",
            "config/label_iris.py": "name = 'label'\n",
            "train.sh": "for m in $MODELS; do python tools/rare.py --config configs/${m}_big.yaml; done\n",
            "configs/vit_big.yaml": "depth: 12\n",
            "configs/vit_small.yaml": "depth: 6\n",
        },
    )
    index, ranking = signals(snapshot, "Which patterns of iris are rare?")
    assert index.links.fitting["tools/rare.py"] == {"config/rare_iris.py", "config/rare_cars.py"}
    assert index.links.fitting["train.sh"] == {"configs/vit_big.yaml"}
    assert value(index, ranking, "config", "config/rare_iris.py") == 1.0
    assert value(index, ranking, "option_of", "config/rare_iris.py") > 0.0
    assert value(index, ranking, "option_of", "config/label_iris.py") == 0.0


def test_a_configuration_in_python_that_a_shell_script_passes_on_is_not_run(tmp_path):
    snapshot = make(
        tmp_path,
        {
            "go.sh": "python main.py --config ./conf/small.py\n",
            "main.py": SCRIPT,
            "conf/small.py": "depth = 3\n",
        },
    )
    index, _ = signals(snapshot, "Is a small model enough?")
    assert index.links.runs["go.sh"] == {"main.py"}
    assert index.links.configs["go.sh"] == {"conf/small.py"}
    assert index.links.commanded["main.py"] == {"conf/small.py"}


def test_a_name_shortened_to_its_beginnings_is_half_said(tmp_path):
    files = dict.fromkeys(("diff-sorp.yaml", "diffusion-sorption.yaml", "burgers.yaml"), "depth: 1\n")
    index, ranking = signals(make(tmp_path, files), "How accurate is the solution of the diffusion-sorption equation?")
    unsaid = {name: value(index, ranking, "unsaid", name) for name in files}
    assert unsaid["diffusion-sorption.yaml"] == 0.0
    assert 0.0 < value(index, ranking, "stem", "diff-sorp.yaml") < 1.0
    assert value(index, ranking, "stem", "burgers.yaml") == 0.0 < unsaid["burgers.yaml"]


def test_how_something_works_is_answered_by_the_part_that_does_it():
    def asks(question):
        return QueryWords.of(TaskQuery(question=question)).how_to

    assert asks("How does the memory-based attention mechanism work on long sequences?")
    assert asks("How can you train an agent?")
    assert not asks("How does the size of the clean set affect the AUROC?")
    assert not asks("How does the network compare with earlier work?")


def test_words_in_ability_meet_those_in_able():
    assert stem("portability") == stem("portable") == stem("portabilities")
    assert stem("ability") != stem("able_bodied")
