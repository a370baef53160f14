"""Generated data are the same for the same seed and have the shape they are named after; readers read what writers
wrote.
"""

import gzip

import numpy as np
import pytest

from kpg.bench.data import analysed_programs, file_graphs, graphs, ldbc, readers, social_network
from kpg.errors import InputError, Unavailable

MADE = {
    "random": lambda seed: graphs.random_graph(100, 500, seed),
    "rmat": lambda seed: graphs.rmat(1_000, 5_000, seed),
    "tree": lambda seed: graphs.tree(5, seed),
    "gnp": lambda seed: graphs.gnp(100, 0.05, seed),
    "assign": lambda seed: analysed_programs.dataflow_program(1_000, seed).assign,
    "pointers": lambda seed: analysed_programs.pointer_program(1_000, seed).assign,
    "knows": lambda seed: social_network.network(100, seed, posts=3).knows,
    "tags": lambda seed: social_network.network(100, seed, posts=3).tags,
}


@pytest.mark.parametrize("make", MADE.values(), ids=MADE)
def test_the_same_seed_gives_the_same_edges_and_another_others(make):
    first, again, other = make(1), make(1), make(2)
    assert np.array_equal(first, again) and not np.array_equal(first, other)
    assert first.dtype == np.int64 and first.shape[1] == 2


def test_rmat_is_skewed_and_a_random_graph_is_not():
    skewed = np.sort(np.bincount(graphs.rmat(1 << 12, 1 << 16, 3)[:, 0]))[::-1]
    even = np.sort(np.bincount(graphs.random_graph(1 << 12, 1 << 16, 3)[:, 0]))[::-1]
    assert skewed[:40].sum() > 5 * even[:40].sum()


def test_rmat_has_as_many_nodes_as_asked():
    edges = graphs.rmat(1_000, 20_000, 1)
    assert 0 <= edges.min() and edges.max() < 1_000
    assert graphs.livejournal_like(0.001)[1].shape == (68_000, 2) and graphs.orkut_like(0.001)[0] == 3_000


def test_a_crawl_numbers_nodes_as_it_meets_them():
    edges = np.array([(1, 7), (1, 5), (5, 7), (7, 1), (5, 2), (4, 3), (3, 1)])
    numbers = dict(zip(edges.reshape(-1).tolist(), graphs.crawled(edges).reshape(-1).tolist(), strict=True))
    assert [numbers[node] for node in (1, 7, 5, 2)] == [0, 1, 2, 3]  # breadth first, in the order of the edges
    assert sorted(set(range(8)) - {numbers[3], numbers[4]}) == [0, 1, 2, 3, 4, 7]  # not met: last, as they were
    skewed = graphs.rmat(1 << 12, 1 << 15, 3)
    degrees = np.bincount(graphs.crawled(skewed)[:, 0], minlength=1 << 12)
    assert degrees[:400].mean() > 3 * degrees.mean() and degrees.sum() == len(skewed)
    assert np.array_equal(np.sort(degrees), np.sort(np.bincount(skewed[:, 0], minlength=1 << 12)))


def test_a_grid_leads_right_and_down():
    assert sorted(map(tuple, graphs.grid(1).tolist())) == [(0, 1), (0, 2), (1, 3), (2, 3)]
    assert len(graphs.grid(150)) == 2 * 150 * 151


def test_a_tree_has_one_parent_for_each_node_but_the_root():
    edges = graphs.tree(6, 1)
    assert sorted(edges[:, 1].tolist()) == list(range(1, len(edges) + 1))
    assert (edges[:, 0] < edges[:, 1]).all()
    children = np.bincount(edges[:, 0])
    assert 2 <= children[children > 0].min() and children.max() <= 6


def test_a_program_flows_forwards_mostly_and_backwards_sometimes():
    program = analysed_programs.dataflow_program(10_000, 1)
    backwards = (program.assign[:, 0] > program.assign[:, 1]).mean()
    assert 0.005 < backwards < 0.1
    assert (
        program.null[:, 0].min() >= 10_000 and program.null[:, 1].max() < 10_000 and program.nodes > program.null.max()
    )


def test_pointers_are_loaded_and_stored():
    program = analysed_programs.pointer_program(10_000, 1)
    derefs = set(program.deref[:, 1].tolist())
    loaded, stored = (derefs & set(program.assign[:, side].tolist()) for side in (0, 1))
    assert loaded and stored
    assert len(derefs) == len(program.deref)


def test_friends_are_mutual_and_some_have_many():
    knows = social_network.network(2_000, 1, posts=1).knows
    pairs = set(map(tuple, knows.tolist()))
    assert all((b, a) in pairs and a != b for a, b in pairs)
    degrees = np.bincount(knows[:, 0], minlength=2_000)
    assert degrees.max() > 5 * degrees.mean() and 5 < degrees.mean() < 20


def test_posts_and_comments_belong_to_people_who_exist():
    network = social_network.network(50, 1, posts=4)
    assert len(network.posts["id"]) == 200 and network.posts["creator"].max() < 50
    assert network.comments["reply_of"].max() < 200 and (np.diff(network.posts["created"]) >= 0).all()
    assert set(network.tags[:, 0].tolist()) <= set(network.posts["id"].tolist())


def test_edge_lists_are_read_as_they_were_written(tmp_path):
    edges = graphs.random_graph(50, 200, 1)
    readers.write_snap(tmp_path / "g.txt", edges)
    assert np.array_equal(readers.read_snap(tmp_path / "g.txt"), edges)
    with gzip.open(tmp_path / "g.txt.gz", "wt") as file:
        file.write((tmp_path / "g.txt").read_text())
    assert np.array_equal(readers.read_snap(tmp_path / "g.txt.gz"), edges)


def test_programs_are_read_as_they_were_written(tmp_path):
    program = analysed_programs.pointer_program(200, 1)
    readers.write_graspan(tmp_path / "p.txt", a=program.assign, d=program.deref)
    tables = readers.read_graspan(tmp_path / "p.txt")
    assert np.array_equal(tables["a"], program.assign) and np.array_equal(tables["d"], program.deref)


def test_a_table_of_ldbc_has_the_columns_of_its_header(tmp_path):
    (tmp_path / "person.csv").write_text("id|firstName|birthday\n933|Mahinda|1989-12-03\n1129|Carmen|1984-02-18\n")
    table = readers.read_ldbc(tmp_path / "person.csv")
    assert table.column_names == ["id", "firstName", "birthday"] and table["id"].to_pylist() == [933, 1129]


WRONG = [
    (readers.read_snap, "1 2\nx 3\n"),
    (readers.read_snap, "1\t2\n-3\t4\n"),
    (readers.read_snap, "1\t2\n3\t4\t5\n"),
    (readers.read_snap, "1\t2\n3\n"),
    (readers.read_snap, "1 2\n99999999999999999999 3\n"),
    (readers.read_snap, "1 2\n\x80\xff\x00 3\n"),
    (readers.read_graspan, "1 2 n\n3 4\n"),
    (readers.read_graspan, "1\t2\tn\n3\t\tn\n"),
]


@pytest.mark.parametrize(("read", "text"), WRONG)
def test_a_line_that_is_something_else_is_named(tmp_path, read, text):
    (tmp_path / "bad").write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError, match=r"bad:2"):
        read(tmp_path / "bad")


@pytest.mark.parametrize("text", ["# a\n1\t2\n3\t4\n", "1 2\n3 4", "1   2\n# b\n\n3\t4\n", "1\t2\r\n3\t4\r\n"])
def test_edges_may_be_apart_by_any_blanks_with_comments_anywhere(tmp_path, text):
    (tmp_path / "g.txt").write_text(text)
    assert readers.read_snap(tmp_path / "g.txt").tolist() == [[1, 2], [3, 4]]


def test_many_edges_are_read_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(readers, "ends", pytest.fail)  # a line at a time would take minutes for livejournal
    edges = graphs.random_graph(50, 200, 1)
    readers.write_snap(tmp_path / "g.txt", edges)
    readers.write_graspan(tmp_path / "p.txt", e=edges, n=edges[:3])
    assert np.array_equal(readers.read_snap(tmp_path / "g.txt"), edges)
    assert np.array_equal(readers.read_graspan(tmp_path / "p.txt", "e", "n")["e"], edges)


def test_lines_are_guessed_from_the_size_of_a_file(tmp_path):
    readers.write_snap(tmp_path / "g.txt", graphs.random_graph(100_000, 50_000, 1))
    with gzip.open(tmp_path / "g.txt.gz", "wt") as file:
        file.write((tmp_path / "g.txt").read_text())
    assert all(40_000 < readers.estimated_lines(tmp_path / name) < 60_000 for name in ("g.txt", "g.txt.gz"))


def test_files_with_nothing_or_something_else_in_them_are_named(tmp_path):
    (tmp_path / "none.txt").write_text("# nothing\n")
    with pytest.raises(InputError, match=r"none.txt has no edges"):
        readers.read_snap(tmp_path / "none.txt")
    (tmp_path / "p.txt").write_text("1\t2\te\n")
    with pytest.raises(InputError, match=r"no edges with label d\s+detail: Its labels: e"):
        readers.read_graspan(tmp_path / "p.txt", "d")
    (tmp_path / "packed.gz").write_text("1 2\n")
    with pytest.raises(InputError, match="not compressed"):
        readers.read_snap(tmp_path / "packed.gz")
    (tmp_path / "person_0_0.csv").write_text("1\t2\n3\t4\n")
    with pytest.raises(InputError, match="not a csv of LDBC"):
        ldbc.people(tmp_path)


def test_any_numbers_of_nodes_become_small_ones_in_the_same_order(tmp_path):
    (tmp_path / "g.txt").write_text(f"7\t{10**15}\n{10**15}\t9\n")
    nodes, edges = file_graphs.read_graph(tmp_path / "g.txt")
    assert nodes == 3 and edges.tolist() == [[0, 2], [2, 1]]
    (tmp_path / "p.txt").write_text(f"{10**15}\t5\tn\n5\t6\te\n")
    nodes, (assign, null) = file_graphs.read_program(tmp_path / "p.txt", "e", "n")
    assert nodes == 3 and assign.tolist() == [[0, 1]] and null.tolist() == [[2, 0]]


@pytest.mark.parametrize("dense", [0, 4])
def test_numbers_that_are_close_together_are_renumbered_alike(dense, monkeypatch):
    monkeypatch.setattr(file_graphs, "DENSE", dense)
    nodes, (one, other) = file_graphs.renumbered(np.array([[3, 9], [5, 3]]), np.array([[11, 5], [9, 9]]))
    assert nodes == 4 and one.tolist() == [[0, 2], [1, 0]] and other.tolist() == [[3, 1], [2, 2]]


PERSON = "firstName|lastName|gender|birthday|creationDate|locationIP|browserUsed"
ADA, BOB = 'Ada|Lo"ve|female|1990-01-01|2010-01-01|1.1.1.1|Opera', "Bob|Love|male|1980-01-01|2010-01-02|1.1.1.2|Opera"
MERGED = {
    "dynamic/person_0_0.csv": f"id|{PERSON}|place\n933|{ADA}|11\n",
    "dynamic/person_1_0.csv": f"id|{PERSON}|place\n17|{BOB}|12\n",
    "dynamic/post_0_0.csv": "id|creationDate|locationIP|browserUsed|language|content|length|creator|place\n"
    "70|2011-01-01|1.1.1.1|Opera|en|hello|5|933|11\n60|2011-01-02|1.1.1.2|Opera||hi|2|17|12\n"
    "50|2011-01-03|1.1.1.2|Opera|en|hi|2|404|12\n",
    "dynamic/post_hasTag_tag_0_0.csv": "Post.id|Tag.id\n60|5\n70|6\n70|5\n50|5\n",
}
APART = {
    "Person/part-0.csv": f"id|{PERSON}\n933|{ADA}\n17|{BOB}\n",
    "Person_isLocatedIn_City/part-0.csv": "creationDate|PersonId|CityId\n2010-01-01|17|12\n2010-01-01|933|11\n",
    "Post/part-0.csv": "id|creationDate|locationIP|browserUsed|language|content|length|LocationCountryId\n"
    "70|2011-01-01|1.1.1.1|Opera|en|hello|5|11\n60|2011-01-02|1.1.1.2|Opera||hi|2|12\n"
    "50|2011-01-03|1.1.1.2|Opera|en|hi|2|12\n",
    "Post_hasCreator_Person/part-0.csv": "PostId|PersonId\n70|933\n60|17\n50|404\n",
    "Post_hasTag_Tag/part-0.csv": "PostId|TagId\n60|5\n70|6\n70|5\n50|5\n",
}


@pytest.mark.parametrize("layout", [MERGED, APART], ids=["merged", "apart"])
def test_a_network_is_read_in_any_layout_of_its_files(tmp_path, layout):
    for name, text in layout.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    people, posts = ldbc.people(tmp_path), ldbc.posts(tmp_path)
    assert people["id"].tolist() == [0, 1]  # 17 and 933
    assert people["place"].tolist() == people["gender"].tolist() == [0, 1]
    assert people["browser"].tolist() == [0, 0]
    assert posts["content"].tolist() == [0, 0, 1] and posts["language"].tolist() == [0, 1, 0]  # 50, 60, 70
    assert ldbc.creators(tmp_path).tolist() == [-1, 0, 1]
    assert ldbc.tags(tmp_path).tolist() == [[0, 0], [1, 0], [2, 0], [2, 1]]


def test_a_directory_without_a_table_or_a_column_is_said_so(tmp_path):
    with pytest.raises(InputError, match="has no file of person"):
        ldbc.people(tmp_path)
    (tmp_path / "person_0_0.csv").write_text("id|firstName\n1|Ada\n")
    with pytest.raises(InputError, match="no column lastName"):
        ldbc.people(tmp_path)
    with pytest.raises(Unavailable, match="not a directory"):
        ldbc.people(tmp_path / "person_0_0.csv")


def test_a_file_that_is_not_there_is_said_so(tmp_path):
    for read in (readers.read_snap, readers.read_graspan, readers.read_ldbc):
        with pytest.raises(Unavailable):
            read(tmp_path / "nothing")
