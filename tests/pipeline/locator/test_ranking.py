"""What the ranking rests on: stated commands, text, paths, the README of a project; and what is no answer."""

from pipeline.locator import TaskQuery, build_index, locate
from pipeline.locator.links import PathResolver
from pipeline.locator.query import QueryWords
from pipeline.locator.ranking import rank
from pipeline.locator.text import stem
from tests.pipeline.locator.repositories import make

SCRIPT = 'if __name__ == "__main__":\n    print("train")\n'


def ranked(snapshot, question, **fields):
    index = build_index(snapshot)
    ranking = rank(index, QueryWords.of(TaskQuery(question=question, **fields)))
    return index, [index.facts[number].path for number in ranking.order], ranking


def test_what_stands_around_a_command_decides_between_equal_programs(tmp_path):
    readme = (
        "# X\n\n## Glaciers\n\nThe flow of ice:\n\n```\npython a.py\n```\n\n"
        "## Volcanoes\n\nThe flow of lava:\n\n```\npython b.py\n```\n"
    )
    snapshot = make(tmp_path, {"README.md": readme, "a.py": SCRIPT, "b.py": SCRIPT})
    assert ranked(snapshot, "How fast does lava flow from volcanoes?")[1][0] == "b.py"
    assert ranked(snapshot, "How fast does the ice of glaciers flow?")[1][0] == "a.py"


def test_the_arguments_of_a_command_name_its_configuration(tmp_path):
    readme = "# X\n\n```\npython run.py --config conf/lava.yaml\npython run.py --config conf/ice.yaml\n```\n"
    files = {"README.md": readme, "run.py": SCRIPT, "conf/lava.yaml": "a: 1\n", "conf/ice.yaml": "a: 2\n"}
    _, paths, ranking = ranked(make(tmp_path, files), "How fast is lava?")
    assert ranking.unit("run.py").command.launch.arguments == ("--config", "conf/lava.yaml")
    assert paths.index("conf/lava.yaml") < paths.index("conf/ice.yaml")


def test_a_project_competes_with_the_words_of_its_own_readme(tmp_path):
    files = {
        "README.md": "# Two papers\n",
        "one/README.md": "# Glaciers\n\nThe flow of ice under pressure.\n",
        "one/run.py": SCRIPT,
        "two/README.md": "# Volcanoes\n\nThe flow of lava under pressure.\n",
        "two/run.py": SCRIPT,
    }
    assert ranked(make(tmp_path, files), "How does lava from volcanoes flow?")[1][0] == "two/run.py"


def test_a_library_is_an_answer_only_when_the_question_names_one_of_its_definitions(tmp_path):
    files = {
        "pkg/__init__.py": "",
        "pkg/memory.py": "class ContextManager:\n    def evict(self):\n        return 'long memory sequences'\n",
        "run.py": "import pkg.memory\n" + SCRIPT + "# long memory sequences\n",
    }
    snapshot = make(tmp_path, files)
    _, _, plain = ranked(snapshot, "Is the memory of long sequences slow?")
    _, _, asked = ranked(snapshot, "How does the context manager keep the memory of long sequences?")
    assert plain.score("pkg/memory.py") < asked.score("pkg/memory.py")
    reasons = asked.reasons(asked.index.position["pkg/memory.py"])
    assert "the question names its ContextManager" in reasons


def test_a_command_that_does_nothing_or_only_tells_about_itself_is_no_unit(tmp_path):
    readme = "# X\n\n```\npython lib.py\npython run.py --help\npython run.py --lr 1\n```\n"
    index = build_index(make(tmp_path, {"README.md": readme, "lib.py": "def f():\n    return 1\n", "run.py": SCRIPT}))
    assert [unit.command.launch.argv for unit in index.units] == [("python", "run.py", "--lr", "1")]
    chain = locate(index, TaskQuery(question="What does lib compute in the run?")).chain
    assert [step.argv for step in chain.usage] == [("python", "run.py", "--lr", "1")]


def test_documents_are_ranked_and_lead_to_what_they_state(tmp_path):
    files = {"docs/lava.md": "# Lava\n\nHow lava flows.\n\n```\npython run.py\n```\n", "run.py": SCRIPT}
    index, paths, _ = ranked(make(tmp_path, files), "How does lava flow?")
    assert "docs/lava.md" in paths
    assert locate(index, TaskQuery(question="How does lava flow?")).chain.entries == ("run.py",)


def test_the_reasons_are_those_that_speak_for_an_answer(tmp_path):
    readme = "# X\n\n## Lava\n\n```\npython run.py --rate 3\n```\n"
    index, _, ranking = ranked(make(tmp_path, {"README.md": readme, "run.py": SCRIPT}), "How hot is lava in a run?")
    reasons = ranking.reasons(index.position["run.py"])
    assert any("stated in README.md:6, with" in reason and "lava" in reason for reason in reasons)
    assert any("its path says run" in reason for reason in reasons)


def test_a_word_that_the_task_repeats_counts_more(tmp_path):
    files = {"a.py": SCRIPT + "# solar\n", "b.py": SCRIPT + "# traffic\n"}
    method = "Solar is measured, as solar was before. Autoformer used traffic."
    _, _, ranking = ranked(make(tmp_path, files), "Is it better?", method=method)
    assert ranking.score("a.py") > ranking.score("b.py") > 0


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
        },
    )
    index = build_index(snapshot)
    assert index.links.configs["run.py"] == {"conf/config.yaml"}
    assert index.links.configs["conf/config.yaml"] == {"conf/task/vmas/balance.yaml"}
    assert "conf/task/vmas/wheel.yaml" in index.links.options["run.py"]


def test_a_configuration_in_python_is_passed_on_and_not_run(tmp_path):
    files = {"go.sh": "python main.py --config ./conf/small.py\n", "main.py": SCRIPT, "conf/small.py": "depth = 3\n"}
    index = build_index(make(tmp_path, files))
    assert index.links.runs["go.sh"] == {"main.py"}
    assert index.links.configs["go.sh"] == {"conf/small.py"}
    assert index.links.commanded["main.py"] == {"conf/small.py"}
    assert not index.places[index.position["conf/small.py"]].runs


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
    index = build_index(snapshot)
    assert {facts.path for facts, place in zip(index.facts, index.places, strict=True) if place.test} == {
        "adding_problem/model_test.py",
        "pkg/test_sums.py",
        "tests/helpers.py",
    }


def test_fetching_data_is_set_up_whatever_it_is_written_in(tmp_path):
    index = build_index(make(tmp_path, {"data/download_d4rl.py": SCRIPT, "Get_Data.sh": "wget x\n", "run.py": SCRIPT}))
    setup = {facts.path for facts, place in zip(index.facts, index.places, strict=True) if place.setup}
    assert setup == {"data/download_d4rl.py", "Get_Data.sh"}


def test_a_path_is_found_where_it_stands_then_by_its_end_then_by_a_rare_name():
    resolver = PathResolver(["a/run.py", "b/run.py", "b/deep/fit.py"])
    assert resolver.find("run.py", "a") == ["a/run.py"]
    assert resolver.find("deep/fit.py") == ["b/deep/fit.py"]
    assert resolver.find("fit.py") == ["b/deep/fit.py"]


def test_words_in_ability_meet_those_in_able():
    assert stem("portability") == stem("portable") == stem("portabilities")
    assert stem("ability") != stem("able_bodied")
