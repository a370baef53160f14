"""Every experiment that takes a file runs on one, and checks its answers on it."""

import re

import numpy as np
import pytest

from kpg.bench.data import social_network
from kpg.bench.data.analysed_programs import dataflow_program, pointer_program
from kpg.bench.data.graphs import rmat
from kpg.bench.data.readers import write_graspan, write_snap
from kpg.bench.registry import experiments
from kpg.bench.run import Run
from kpg.bench.runner import new_result
from kpg.errors import InputError

READ = [experiment for experiment in experiments() if experiment.reads]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """Write a file of each format, with large node numbers and gaps, as real files have them."""
    folder = tmp_path_factory.mktemp("files")
    write_snap(folder / "graph.txt", 10**12 + 7 * rmat(60, 400, 3))
    flows, pointers = dataflow_program(100, 3), pointer_program(100, 3)
    write_graspan(folder / "X20.txt", e=10**12 + 3 * flows.assign, n=10**12 + 3 * flows.null)
    write_graspan(folder / "X21.txt", a=10**12 + 3 * pointers.assign, d=10**12 + 3 * pointers.deref)
    write_ldbc(folder / "ldbc", social_network.network(30, 3, posts=3))
    return folder


def write_ldbc(directory, network):
    """Write the files that experiments read, as LDBC's generator does."""
    directory.mkdir()
    people = {"firstName": "first_name", "lastName": "last_name", "gender": "gender", "birthday": "birthday",
              "place": "place", "browserUsed": "browser", "locationIP": "ip", "creationDate": "created"}  # fmt: skip
    posts = {"creationDate": "created", "browserUsed": "browser", "language": "language", "locationIP": "ip",
             "content": "content", "place": "place"}  # fmt: skip
    write(directory / "person_0_0.csv", ["id", *people],
          [1_000 + network.people["id"], *[network.people[column] for column in people.values()]])  # fmt: skip
    write(directory / "post_0_0.csv", ["id", *posts, "creator"],
          [5_000 + network.posts["id"], *[network.posts[column] for column in posts.values()],
           1_000 + network.posts["creator"]])  # fmt: skip
    write(directory / "post_hasTag_tag_0_0.csv", ["Post.id", "Tag.id"],
          [5_000 + network.tags[:, 0], network.tags[:, 1]])  # fmt: skip


def write(path, headings, columns):
    np.savetxt(path, np.stack(columns, axis=1), fmt="%d", delimiter="|", header="|".join(headings), comments="")


def file_of(experiment, files):
    if experiment.reads.tables:
        return files / "ldbc"
    own = files / f"{experiment.id}.txt"
    return own if own.exists() else files / "graph.txt"


@pytest.mark.jit
@pytest.mark.parametrize("experiment", READ, ids=lambda experiment: experiment.id)
def test_an_experiment_runs_on_a_file_in_place_of_generated_data(experiment, files, tmp_path):
    """X7, X8, X9, X10, X20, X21, X22, X23, X24, X25, X26, X27, X28, X30."""
    result = new_result(experiment, 0.0005, 1)
    experiment.run(Run(result, limits=experiment.limits, peers=False, data=file_of(experiment, files)))
    assert result.rows
    wrong = tmp_path if experiment.reads.tables else tmp_path / "wrong.txt"
    (tmp_path / "wrong.txt").write_text("some words\n")
    with pytest.raises(InputError, match=re.escape(str(wrong))):
        experiment.run(Run(new_result(experiment, 0.0005, 1), peers=False, data=wrong))
