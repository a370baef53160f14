"""Queries written by hand, many with correlation in rare places, all standing at once and judged by PostgreSQL."""

from tests.sql.generated.tables import E, R, S

QUERIES = [
    "SELECT a, bit_and(c) AS x, bit_or(DISTINCT c) AS y, bit_xor(c) FILTER (WHERE f) AS z FROM s GROUP BY a",
    "SELECT a, string_agg(t, c || '-' ORDER BY t, c) AS x, string_agg(DISTINCT t, t) AS y FROM s GROUP BY a",
    "SELECT max(ARRAY[a, c]) AS x, min(ARRAY[t, NULL]) AS y, max(ARRAY[n]) AS z FROM s",
    "SELECT id, generate_series(1, b) AS x, generate_series(a, 3) AS y, b AS z FROM r",
    "SELECT generate_series(1, a) AS x, unnest(ARRAY[a, b]) AS y, generate_series(b, 2) AS z FROM e",
    "WITH RECURSIVE p(a,b) AS (SELECT a,b FROM e UNION SELECT p.a, e.b FROM p JOIN e ON p.b=e.a) SELECT * FROM p",
    "WITH RECURSIVE p(a,b,k) AS (SELECT a,b,1 FROM e UNION ALL SELECT p.a, e.b, k+1 FROM p JOIN e ON p.b=e.a "
    "WHERE k<4) SELECT * FROM p",
    "WITH RECURSIVE p(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM p WHERE x<5) SELECT p.x, count(e.a) AS n FROM p "
    "LEFT JOIN e ON e.a=p.x GROUP BY p.x",
    "WITH RECURSIVE p(a) AS (SELECT id FROM r UNION SELECT e.b FROM p, LATERAL (SELECT b FROM e WHERE e.a=p.a) "
    "e) SELECT r.id, (SELECT count(*) FROM p WHERE p.a=r.a) AS n FROM r",
    "SELECT r.id, (SELECT max(s.c) FROM s WHERE s.a=r.a AND s.n > (SELECT avg(s2.n) FROM s s2 WHERE s2.t=r.t)) "
    "AS m FROM r",
    "SELECT r.id FROM r WHERE EXISTS (SELECT 1 FROM s WHERE s.a=r.a AND NOT EXISTS (SELECT 1 FROM e WHERE "
    "e.a=s.a AND e.b=r.b))",
    "SELECT r.id FROM r WHERE r.a NOT IN (SELECT s.a FROM s WHERE s.t=r.t)",
    "SELECT r.id, r.a <> ALL (SELECT s.a FROM s WHERE s.c > r.b) AS x, r.a = ANY (SELECT s.a FROM s WHERE s.c > "
    "r.b) AS y FROM r",
    "SELECT a, count(*) AS n FROM r GROUP BY a HAVING count(*) > (SELECT count(*) FROM s WHERE s.a = r.a)",
    "SELECT r.id, x.c FROM r LEFT JOIN LATERAL (SELECT c FROM s WHERE s.a=r.a ORDER BY c DESC NULLS LAST LIMIT "
    "1) x ON true",
    "SELECT r.id, x.v FROM r, LATERAL (SELECT s.c + r.b AS v FROM s UNION ALL SELECT e.a FROM e WHERE e.b=r.a) x",
    "SELECT r.id, x.v FROM r CROSS JOIN LATERAL (SELECT sum(s.c) AS v FROM s WHERE s.a < r.a) x",
    "SELECT r.id, x.v FROM r, LATERAL (WITH q AS (SELECT c FROM s WHERE s.a=r.a) SELECT count(*) AS v FROM q q1, "
    "q q2) x",
    "SELECT r.id, s.c FROM r FULL JOIN s ON r.a=s.a AND r.b<s.c",
    "SELECT r.id, s.c FROM r LEFT JOIN s ON r.a=s.a AND EXISTS (SELECT 1 FROM e WHERE e.a=r.b AND e.b=s.a)",
    "SELECT r.id, s.c FROM r RIGHT JOIN s ON r.n > s.n",
    "SELECT a, t, grouping(a,t) AS g, sum(n) AS s, count(DISTINCT b) AS d FROM r GROUP BY GROUPING SETS ((a,t),(a),())",
    "SELECT a, t, count(*) AS c FROM s GROUP BY CUBE(a,t)",
    "SELECT a, sum(n) FILTER (WHERE f) AS x, string_agg(t, ',' ORDER BY t, c) AS y FROM s GROUP BY a",
    "SELECT DISTINCT ON (a) a, c, t FROM s ORDER BY a, c DESC NULLS LAST, t, n, f, d",
    "SELECT id FROM r ORDER BY b DESC, id LIMIT 2 OFFSET 1",
    "SELECT a FROM s INTERSECT ALL SELECT a FROM r",
    "(SELECT a FROM s EXCEPT SELECT a FROM r) UNION ALL SELECT b FROM e",
    "SELECT id, CASE WHEN b=0 THEN 0 ELSE 10/b END AS x FROM r",
    "SELECT id, 10/b AS x FROM r",
    "SELECT id FROM r WHERE b<>0 AND 10/b>1",
    "SELECT id FROM r WHERE 10/b>1 AND b<>0",
    "SELECT id FROM r WHERE b=0 OR 10/b>1",
    "SELECT id, coalesce(b, 1/b) AS x FROM r",
    "SELECT r.id, (SELECT s.c FROM s WHERE s.a=r.a) AS x FROM r",
    "SELECT a, sum(10/b) AS x FROM r GROUP BY a",
    "SELECT a, percentile_cont(0.5) WITHIN GROUP (ORDER BY n) AS p, percentile_disc(0.5) WITHIN GROUP (ORDER BY "
    "t) AS q FROM r GROUP BY a",
    "SELECT x.a FROM (SELECT a, b FROM r) x WHERE (x.a, x.b) IN (SELECT e.a, e.b FROM e)",
    "SELECT id FROM r WHERE (a, b) = ANY (SELECT e.a, e.b FROM e)",
    "SELECT id FROM r WHERE (a, b) = (SELECT e.a, e.b FROM e WHERE e.a = 99)",
    "SELECT id, (a,b) < (SELECT min(e.a), min(e.b) FROM e) AS x FROM r",
    "SELECT id, ARRAY(SELECT e.b FROM e WHERE e.a = r.a ORDER BY e.b) AS x FROM r",
    "SELECT r.id, g FROM r, generate_series(1, r.b) AS g",
    "SELECT r.id, e.b FROM r JOIN e USING (a) JOIN s USING (a) WHERE r.id + e.b > s.c",
    "SELECT count(*) AS n FROM r, s, e WHERE r.a=s.a AND s.a=e.a AND r.b=e.b",
    "SELECT (SELECT count(*) FROM s WHERE s.a = r.a GROUP BY s.t ORDER BY 1 DESC LIMIT 1) AS x FROM r",
    "SELECT max((SELECT count(*) FROM s WHERE s.a=r.a)) AS m FROM r",
    "SELECT (SELECT max(r.b) FROM s LIMIT 1) AS m FROM r GROUP BY r.a",
    "SELECT a, (SELECT sum(r.n) FILTER (WHERE true)) AS m FROM r GROUP BY a",
    "SELECT id FROM r ORDER BY (SELECT count(*) FROM s WHERE s.a=r.a) DESC, id LIMIT 2",
    "SELECT (SELECT count(*) FROM s WHERE s.a=r.a) AS k, count(*) AS n FROM r GROUP BY 1",
    "SELECT CASE WHEN a IS NULL THEN (SELECT min(c) FROM s) ELSE (SELECT c/0 FROM s WHERE s.a = r.a LIMIT 1) END "
    "AS x FROM r",
    "SELECT id FROM r WHERE CASE WHEN b<>0 THEN 10/b>1 ELSE EXISTS (SELECT 1 FROM s WHERE s.a=r.a) END",
    "SELECT id FROM r WHERE a IS NOT DISTINCT FROM (SELECT min(a) FROM s)",
    "SELECT t, n FROM r NATURAL FULL JOIN s",
    "VALUES (1,'a'),(2,NULL)",
    "SELECT e.a, x.n FROM e LEFT JOIN (SELECT a, count(*) AS n FROM s GROUP BY a) x ON x.a=e.a",
    "SELECT id FROM r WHERE b > 0 FETCH FIRST 1 ROWS WITH TIES",
    "SELECT id FROM r ORDER BY b FETCH FIRST 1 ROWS WITH TIES",
    "SELECT mode() WITHIN GROUP (ORDER BY b) AS m FROM r",
    "SELECT every(f) AS v, bool_or(f) AS w FROM s",
    "SELECT sum(DISTINCT n) AS x, avg(DISTINCT a) AS y FROM s",
    "SELECT array_agg(DISTINCT a ORDER BY a) AS x, string_agg(DISTINCT t, '-') AS y FROM s",
]
ROWS = [
    "INSERT INTO r VALUES (1,1,2,'a',1.5),(2,NULL,1,'b',NULL),(3,2,3,NULL,2.25),(4,2,2,'a',-1)",
    "INSERT INTO s VALUES (1,3,'a',2.25,true,NULL),(2,1,'b',1.5,false,date '2024-02-29'),(NULL,2,'a',NULL,NULL,NULL)",
    "INSERT INTO e VALUES (1,2),(2,3),(3,1),(1,1),(NULL,2)",
]
CHANGES = [
    "INSERT INTO s VALUES (1,4,'a',9,true,NULL),(1,3,'a',2.25,true,NULL)",
    "INSERT INTO r VALUES (7,1,0,'a',3)",
    "DELETE FROM e WHERE a=3",
    "UPDATE r SET b=4, a=NULL WHERE id=7",
    "UPDATE s SET a=2 WHERE c=4",
    "DELETE FROM r WHERE id=1",
    "DELETE FROM s",
    "INSERT INTO e VALUES (2,3),(4,1)",
    "UPDATE r SET b=0 WHERE id=3",
    "DELETE FROM r",
]


def test_many_views_stand_together(twins):
    twins.reset()
    twins.create_tables({table.name: table.definition for table in (R, S, E)})
    twins.run_all(ROWS)
    for number, query in enumerate(QUERIES):
        twins.install(f"answer{number}", query)
    twins.compare_views()
    for change in CHANGES:
        twins.run(change)
        twins.compare_views()
    twins.reset()
    [state] = twins.db.describe().get("workers", [twins.db.describe()])[:1]
    assert not state["outputs"] and {flow["name"] for flow in state["dataflows"]} <= {"unit of queries"}
    assert len(state["arrangements"]) <= 1
