"""Queries on the rules that a reader of PostgreSQL's manual would try, by subject. PostgreSQL says what each means.

The tables are r (id INT PRIMARY KEY, a INT, b INT NOT NULL, t TEXT, n NUMERIC), s (a, c BIGINT, t, n, f BOOLEAN,
d DATE), u (a SMALLINT, x DOUBLE PRECISION, v VARCHAR, m TIMESTAMP), e (a, b) and rare.
"""

NAMES = """
SELECT a FROM r, s
SELECT r.a FROM r AS q
SELECT q.a FROM r AS q
SELECT R.A, "a", "A" FROM r
SELECT R.A, "a" FROM r
SELECT * FROM r, r
SELECT * FROM r, r AS r
SELECT * FROM r AS x(p, q)
SELECT * FROM r AS x(p, q, z, y, w, v)
SELECT x.p, x.b FROM r AS x(p)
SELECT x.id FROM r AS x(p)
SELECT nothing.a FROM r
SELECT r.nothing FROM r
SELECT * FROM nothing
SELECT nothing
SELECT *
SELECT r.* FROM s
SELECT r.*, s.* FROM r, s
SELECT FROM r
SELECT a b, c d FROM s
SELECT a AS select FROM r
SELECT a select FROM r
SELECT a filter FROM r
SELECT a AS "x y", 1 AS "X" FROM r
SELECT a as value, b name FROM r
SELECT 1 AS a, 2 AS a
SELECT a FROM (SELECT 1 AS a, 2 AS a) AS q
SELECT * FROM (SELECT 1 AS a, 2 AS a) AS q
SELECT * FROM (SELECT 1)
SELECT * FROM (VALUES (1, 'a'), (2, NULL)) AS v
SELECT column1, v.column2 FROM (VALUES (1, 'a')) AS v
SELECT t FROM (SELECT 1 AS z) AS t
SELECT r FROM r
SELECT a[1] FROM r
TABLE e
SELECT a.b.c.d FROM r
""".strip().splitlines()

OUTPUT_NAMES = """
SELECT count(*), sum(a), a + 1, -a, 'x', 1, NULL, true FROM r GROUP BY a
SELECT CASE WHEN a > 1 THEN a END, CASE WHEN a > 1 THEN 1 ELSE b END, CASE a WHEN 1 THEN 2 END FROM r
SELECT coalesce(a, 1), nullif(a, 1), greatest(a, 1), least(a, 1) FROM r
SELECT a::text, '1'::int, CAST(a AS bigint), (a + 1)::numeric(5,2), 1::float8, 'x'::varchar(3) FROM r
SELECT extract(year FROM d), substring(t FROM 1), trim(t), position('a' IN t), upper(t) FROM s
SELECT date '2020-01-01', timestamp '2020-01-01', interval '1 day', interval '1' day FROM s
SELECT EXISTS (SELECT 1), (SELECT a FROM r LIMIT 1), (SELECT 1), ARRAY[1], ARRAY(SELECT 1), (SELECT max(a) FROM r)
SELECT (a), (r.a), a IS NULL, a BETWEEN 1 AND 2, a IN (1), NOT f FROM s NATURAL JOIN (SELECT 1 AS zz) AS q, r AS r2
SELECT grouping(a), count(DISTINCT b) FROM r GROUP BY a
SELECT (ARRAY[1,2])[1], t || 'x', t LIKE 'a' FROM r
SELECT (SELECT a FROM r UNION SELECT 1), (VALUES (1))
""".strip().splitlines()

JOINS = """
SELECT * FROM r JOIN s USING (a)
SELECT * FROM r JOIN s USING (a, t)
SELECT * FROM r JOIN s USING (nothing)
SELECT * FROM r JOIN s USING (c)
SELECT * FROM r NATURAL JOIN s
SELECT * FROM r NATURAL FULL JOIN u
SELECT a, r.a, s.a FROM r FULL JOIN s USING (a)
SELECT * FROM r FULL JOIN u USING (a) FULL JOIN s USING (a)
SELECT * FROM r JOIN s ON r.a = s.a JOIN u USING (a)
SELECT * FROM e JOIN r ON e.a = r.a JOIN s USING (a)
SELECT * FROM r JOIN s
SELECT * FROM r CROSS JOIN s ON true
SELECT * FROM r LEFT JOIN s
SELECT * FROM r JOIN s ON r.a
SELECT * FROM r JOIN s ON r.a = u.a, u
SELECT * FROM u, r JOIN s ON r.a = u.a
SELECT * FROM (r JOIN s ON true) AS x
SELECT x.c FROM (r JOIN s USING (a)) AS x
SELECT r.id FROM (r JOIN s USING (a)) AS x
SELECT r.id FROM (r JOIN s USING (a))
SELECT * FROM r JOIN s JOIN u ON s.a = u.a ON r.a = s.a
SELECT * FROM r JOIN s JOIN u ON r.a = u.a ON r.a = s.a
SELECT * FROM r LEFT JOIN (s CROSS JOIN u) ON r.a = s.a
SELECT * FROM r LEFT OUTER JOIN s ON true RIGHT OUTER JOIN u ON true FULL OUTER JOIN e ON true
SELECT * FROM r JOIN s USING (a) WHERE a = 1 AND r.a = 2 AND s.a = 3
SELECT * FROM r INNER JOIN LATERAL (SELECT s.c FROM s WHERE s.a = r.a) AS q ON true
SELECT * FROM r, (SELECT s.c FROM s WHERE s.a = r.a) AS q
SELECT * FROM r, LATERAL (SELECT s.c FROM s WHERE s.a = r.a) AS q
SELECT * FROM r RIGHT JOIN LATERAL (SELECT s.c FROM s WHERE s.a = r.a) AS q ON true
SELECT * FROM r, LATERAL (SELECT sum(r.a)) AS q
SELECT * FROM r, LATERAL (SELECT sum(c) FROM s WHERE s.a = r.a) AS q
SELECT * FROM generate_series(1, 3) AS g, r WHERE r.a = g
SELECT g.g, n, o FROM generate_series(1, 3) AS g, generate_series(1, g) WITH ORDINALITY AS h(n, o)
SELECT * FROM r, generate_series(1, r.a)
SELECT * FROM generate_series(1, r.a), r
SELECT * FROM abs(-1)
SELECT * FROM unnest(ARRAY[1,2]) AS x
SELECT * FROM r TABLESAMPLE system (1)
""".strip().splitlines()

GROUPS = """
SELECT a, b FROM r GROUP BY a
SELECT id, a, b, t FROM r GROUP BY id
SELECT r.*, count(*) FROM r GROUP BY r.id
SELECT r.t, s.t FROM r, s GROUP BY r.id
SELECT x.t FROM (SELECT * FROM r) AS x GROUP BY x.id
SELECT a + 1 FROM r GROUP BY a + 1
SELECT a + 1 + 1 FROM r GROUP BY a + 1
SELECT a + 2 FROM r GROUP BY a + 1
SELECT a AS b, count(*) FROM r GROUP BY b
SELECT a + 1 AS z FROM r GROUP BY z
SELECT a + 1 AS z FROM r GROUP BY z + 1
SELECT a FROM r GROUP BY 1
SELECT a FROM r GROUP BY 2
SELECT a FROM r GROUP BY 'x'
SELECT a, count(*) FROM r GROUP BY 2
SELECT count(*) FROM r GROUP BY count(*)
SELECT a FROM r HAVING true
SELECT 1 FROM r HAVING count(*) > 1
SELECT a FROM r GROUP BY a HAVING b > 1
SELECT a FROM r GROUP BY a HAVING count(*) > 1 AND max(b) < 5
SELECT a FROM r WHERE count(*) > 1
SELECT sum(count(*)) FROM r
SELECT sum(a) FILTER (WHERE count(*) > 1) FROM r
SELECT a, sum(b) FILTER (WHERE b > 1) FROM r GROUP BY a
SELECT sum(a ORDER BY b), count(DISTINCT a), string_agg(t, ',' ORDER BY b DESC) FROM r
SELECT string_agg(DISTINCT t, ',' ORDER BY b) FROM r
SELECT string_agg(DISTINCT t, ',' ORDER BY t) FROM r
SELECT count(DISTINCT a, b) FROM r
SELECT count() FROM r
SELECT sum(*) FROM r
SELECT lower(DISTINCT t) FROM r
SELECT lower(t) FILTER (WHERE true) FROM r
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY n) FROM r
SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY t) FROM r
SELECT mode() WITHIN GROUP (ORDER BY t) FROM r
SELECT percentile_cont(0.5) FROM r
SELECT sum(a) WITHIN GROUP (ORDER BY b) FROM r
SELECT a, b, grouping(a), grouping(a, b), count(*) FROM r GROUP BY ROLLUP (a, b)
SELECT grouping(b) FROM r GROUP BY a
SELECT grouping(a) FROM r
SELECT a FROM r GROUP BY CUBE (a, (b, t)), GROUPING SETS ((), (n))
SELECT a, b FROM r GROUP BY GROUPING SETS (a, ROLLUP (b, t))
SELECT id, t FROM r GROUP BY ROLLUP (id)
SELECT a FROM r GROUP BY ()
SELECT count(*) FROM r GROUP BY ()
SELECT (SELECT sum(r.a)) FROM r
SELECT (SELECT sum(r.a) FROM s) FROM r
SELECT (SELECT sum(r.a + s.a) FROM s) FROM r
SELECT (SELECT count(*) FROM s WHERE s.a = sum(r.a)) FROM r
SELECT b, (SELECT count(*) FROM s WHERE s.a = r.b) FROM r GROUP BY b
SELECT b, (SELECT count(*) FROM s WHERE s.a = r.a) FROM r GROUP BY b
SELECT (SELECT max(b) FROM e WHERE e.a = r.a) FROM r GROUP BY a
SELECT sum((SELECT max(b) FROM e WHERE e.a = r.a)) FROM r
SELECT avg(a), avg(n), avg(b::float8), sum(a), sum(b::bigint), sum(n), var_pop(a), stddev(n), bool_and(a > 1) FROM r
SELECT min(t), max(id), count(t), array_agg(a), array_agg(t ORDER BY a) FROM r
SELECT avg(t) FROM r
SELECT sum('1') FROM r
SELECT max(NULL) FROM r
SELECT sum(a) OVER () FROM r
""".strip().splitlines()

ORDERS = """
SELECT a FROM r ORDER BY b
SELECT a AS b FROM r ORDER BY b
SELECT a AS z FROM r ORDER BY z + 1
SELECT a AS x, b AS x FROM r ORDER BY x
SELECT a AS x, a AS x FROM r ORDER BY x
SELECT a FROM r ORDER BY 1, 2
SELECT a, b FROM r ORDER BY 1 DESC NULLS LAST, 2
SELECT a FROM r ORDER BY 'x'
SELECT a FROM r ORDER BY NULL
SELECT a FROM r ORDER BY 1.5
SELECT DISTINCT a FROM r ORDER BY b
SELECT DISTINCT a FROM r ORDER BY a + 1
SELECT DISTINCT a + 1 FROM r ORDER BY a + 1
SELECT DISTINCT ON (a) a, b FROM r ORDER BY a, b
SELECT DISTINCT ON (a) a, b FROM r ORDER BY b, a
SELECT DISTINCT ON (a, b) t FROM r ORDER BY b, a, t
SELECT DISTINCT ON (a) b FROM r
SELECT DISTINCT ON (2) a FROM r
SELECT a FROM r ORDER BY count(*)
SELECT a FROM r GROUP BY a ORDER BY count(*), sum(b)
SELECT a FROM r GROUP BY a ORDER BY b
SELECT a FROM r LIMIT 1 OFFSET 2
SELECT a FROM r OFFSET 2 LIMIT 1
SELECT a FROM r LIMIT 1 LIMIT 2
SELECT a FROM r LIMIT a
SELECT a FROM r LIMIT (SELECT 1)
SELECT a FROM r LIMIT NULL
SELECT a FROM r LIMIT ALL
SELECT a FROM r LIMIT 'x'
SELECT a FROM r LIMIT 1.5
SELECT a FROM r LIMIT -1
SELECT a FROM r LIMIT 1, 2
SELECT a FROM r ORDER BY a FETCH FIRST 2 ROWS WITH TIES
SELECT a FROM r FETCH FIRST ROW ONLY
SELECT a FROM r FETCH FIRST 2 ROWS WITH TIES
SELECT a FROM r OFFSET 1 ROWS FETCH NEXT 2 ROWS ONLY
(SELECT a FROM r ORDER BY b LIMIT 1) ORDER BY a
(SELECT a FROM r) ORDER BY b
SELECT * FROM (SELECT a FROM r ORDER BY b) AS q
SELECT a FROM r WHERE a IN (SELECT a FROM s ORDER BY c LIMIT 1)
SELECT a FROM r, LATERAL (SELECT c FROM s LIMIT r.a) AS q
""".strip().splitlines()

SETS = """
SELECT a FROM r UNION SELECT c FROM s
SELECT a FROM r UNION SELECT t FROM s
SELECT a FROM r UNION SELECT a, b FROM r
SELECT a FROM r UNION SELECT '1'
SELECT '1' UNION SELECT 1
SELECT 'x' UNION SELECT 1
SELECT NULL UNION SELECT NULL UNION SELECT 1
SELECT 'a' UNION SELECT NULL
SELECT 1 UNION SELECT 2.5 UNION SELECT 1::float8
SELECT a AS p FROM r UNION SELECT b AS q FROM r ORDER BY p
SELECT a AS p FROM r UNION SELECT b AS q FROM r ORDER BY q
SELECT a AS p FROM r UNION SELECT b FROM r ORDER BY p + 1
SELECT a AS p FROM r UNION SELECT b FROM r ORDER BY 1 LIMIT 2
SELECT a FROM r ORDER BY a UNION SELECT b FROM r
(SELECT a FROM r ORDER BY a LIMIT 1) UNION ALL SELECT b FROM r
SELECT 1 UNION SELECT 2 INTERSECT SELECT 3 EXCEPT ALL SELECT 4
SELECT d FROM s UNION SELECT m FROM u
SELECT v FROM u UNION SELECT t FROM s
VALUES (1), ('2'), (NULL)
VALUES (1), ('x')
VALUES (1, 2), (3)
VALUES (1.5), (1), (2.25)
SELECT a FROM r INTERSECT DISTINCT SELECT a FROM s
SELECT 1, 'a' UNION ALL VALUES (2, 'b')
""".strip().splitlines()

WITHS = """
WITH w AS (SELECT a FROM r) SELECT * FROM w, w AS w2
WITH w(x) AS (SELECT a, b FROM r) SELECT * FROM w
WITH w(x, y, z) AS (SELECT a, b FROM r) SELECT * FROM w
WITH w AS (SELECT 1), w AS (SELECT 2) SELECT * FROM w
WITH w AS (SELECT * FROM v), v AS (SELECT 1) SELECT * FROM w
WITH RECURSIVE w AS (SELECT * FROM v), v AS (SELECT 1 AS z) SELECT * FROM w
WITH r AS (SELECT 1 AS one) SELECT * FROM r
WITH w AS (SELECT a FROM r) SELECT (SELECT max(a) FROM w), a IN (SELECT a FROM w) FROM s
WITH w AS MATERIALIZED (SELECT 1 AS x), v AS NOT MATERIALIZED (SELECT * FROM w) SELECT * FROM v
SELECT * FROM (WITH w AS (SELECT 1 AS x) SELECT * FROM w) AS q
WITH w AS (SELECT 1 AS x) SELECT * FROM (WITH w AS (SELECT 2 AS y) SELECT * FROM w) AS q, w
WITH RECURSIVE p(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM p WHERE x < 5) SELECT * FROM p
WITH RECURSIVE p(x) AS (SELECT a FROM e UNION SELECT e.b FROM p, e WHERE e.a = p.x) SELECT * FROM p
WITH RECURSIVE p AS (SELECT 1 AS x UNION SELECT x + 1 FROM p WHERE x < 5) SELECT x FROM p
WITH RECURSIVE p(x) AS (SELECT x FROM p) SELECT * FROM p
WITH RECURSIVE p(x) AS (SELECT x FROM p UNION SELECT 1) SELECT * FROM p
WITH RECURSIVE p(x) AS (SELECT 1 UNION SELECT p.x FROM p, p AS q) SELECT * FROM p
WITH RECURSIVE p(x) AS (SELECT 1 UNION SELECT sum(x)::int FROM p) SELECT * FROM p
WITH RECURSIVE p(x) AS (SELECT 1 UNION SELECT a FROM e WHERE a IN (SELECT x FROM p)) SELECT * FROM p
WITH RECURSIVE p(x) AS (SELECT 1 UNION SELECT e.a FROM e LEFT JOIN p ON p.x = e.b) SELECT * FROM p
WITH RECURSIVE p(x) AS (SELECT 1 UNION SELECT e.a FROM p LEFT JOIN e ON p.x = e.b) SELECT * FROM p
WITH RECURSIVE p(x) AS (SELECT 1 UNION (SELECT x FROM p EXCEPT SELECT 2)) SELECT * FROM p
WITH RECURSIVE p(x) AS (SELECT 1 UNION (SELECT 2 EXCEPT SELECT x FROM p)) SELECT * FROM p
WITH RECURSIVE p(x) AS (SELECT 1 UNION (SELECT x FROM p INTERSECT SELECT 2)) SELECT * FROM p
WITH RECURSIVE p(x) AS (SELECT 1 UNION SELECT x + 1 FROM p ORDER BY 1) SELECT * FROM p
WITH RECURSIVE p(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM p LIMIT 3) SELECT * FROM p
WITH RECURSIVE p(x) AS (SELECT 1 UNION ALL SELECT x + 1.5 FROM p WHERE x < 5) SELECT * FROM p
WITH RECURSIVE p(x) AS (SELECT 1.0 UNION ALL SELECT x * 1.5 FROM p WHERE x < 5) SELECT * FROM p
WITH RECURSIVE p(x) AS (SELECT 'a' UNION ALL SELECT x || 'b' FROM p WHERE length(x) < 5) SELECT * FROM p
WITH RECURSIVE p(x) AS (SELECT 1 UNION SELECT 1, 2 FROM p) SELECT * FROM p
WITH RECURSIVE p(x) AS (SELECT 1 UNION SELECT y FROM q), q(y) AS (SELECT 1 UNION SELECT x FROM p) SELECT * FROM p
WITH RECURSIVE p(x) AS (SELECT 1 UNION SELECT z FROM (SELECT x AS z FROM p) AS q) SELECT * FROM p
WITH RECURSIVE p(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM p WHERE x < 3) SELECT * FROM p AS p1 JOIN p AS p2 USING (x)
WITH RECURSIVE p(x) AS (SELECT 1 UNION SELECT DISTINCT x + 1 FROM p GROUP BY x) SELECT * FROM p
WITH w AS (SELECT * FROM w) SELECT 1
""".strip().splitlines()

SUBQUERIES = """
SELECT (SELECT a, b FROM r)
SELECT (SELECT a FROM r)
SELECT a IN (SELECT a, c FROM s) FROM r
SELECT a IN (SELECT t FROM s) FROM r
SELECT (a, b) IN (SELECT a, c FROM s) FROM r
SELECT (a, b) IN ((1, 2), (3, 4)) FROM r
SELECT (a, b) IN ((1, 2), (3)) FROM r
SELECT (a, b) = (1, 2), (a, b) < (b, a), (a, t) >= (1, 'x'), (a, b) <> (1, NULL) FROM r
SELECT (a, b) = (1, 2, 3) FROM r
SELECT (a, b) IS NULL, (a, b) IS NOT NULL, (a, b) IS DISTINCT FROM (1, 2) FROM r
SELECT a = ANY (SELECT a FROM s), a <> ALL (SELECT c FROM s), a < SOME (SELECT a FROM u) FROM r
SELECT a = ANY (ARRAY[1, 2]), a = ALL ('{1,2}'), t LIKE ANY (ARRAY['a', 'b']) FROM r
SELECT a = ANY (1) FROM r
SELECT a NOT IN (1, NULL, 2) FROM r
SELECT a IN ('1', '2') FROM r
SELECT a IN ('x') FROM r
SELECT t IN (1, 2) FROM r
SELECT a IN () FROM r
SELECT EXISTS (SELECT FROM s WHERE s.a = r.a) FROM r
SELECT NOT EXISTS (SELECT 1) AND EXISTS (SELECT * FROM r)
SELECT ARRAY(SELECT a FROM r ORDER BY b), ARRAY(SELECT t FROM r)
SELECT ARRAY(SELECT a, b FROM r)
SELECT a FROM r WHERE (SELECT true)
SELECT a FROM r WHERE (SELECT 1)
SELECT (SELECT (SELECT r.a + s.a + u.a FROM u LIMIT 1) FROM s LIMIT 1) FROM r
SELECT a, (SELECT count(*) FROM s WHERE s.a = r.a) AS n FROM r ORDER BY n, (SELECT max(c) FROM s WHERE s.a = r.b)
SELECT a FROM r WHERE a = (SELECT max(a) FROM r AS q WHERE q.b = r.b)
SELECT (a, b) = ANY (SELECT a, b FROM e) FROM r
SELECT ((SELECT 1) UNION (SELECT 2)) IS NULL
SELECT (a, b) = (SELECT e.a, e.b FROM e LIMIT 1), (a, b) < (SELECT a, b FROM e WHERE e.a = r.a) FROM r
SELECT (a, b) = (SELECT a FROM e) FROM r
""".strip().splitlines()

EXPRESSIONS = """
SELECT a = b = a FROM r
SELECT a < b < a FROM r
SELECT NOT a = b FROM r
SELECT a = 1 IS NULL, a IS NULL = true FROM r
SELECT - a ^ 2, 2 ^ 3 ^ 2, a * b + a % b - - a FROM r
SELECT a BETWEEN 1 AND 2 AND b = 1, a NOT BETWEEN SYMMETRIC 3 AND 1 FROM r
SELECT t LIKE 'a%', t NOT LIKE 'a', t ILIKE 'A', t SIMILAR TO 'a|b', t ~ 'a', t !~* 'b', t LIKE 'a!%' ESCAPE '!' FROM r
SELECT a LIKE 'x' FROM r
SELECT a || b FROM r
SELECT a || t, t || a, t || NULL, 'a' || 'b', n || 'x' FROM r
SELECT t + 1 FROM r
SELECT '1' + 1, 1 + '1', '1' + '2'
SELECT a + n, a / b, n / 3, a / 2.0, n * n, a % 2, n % 2, b::bigint / 2, a::float8 / 3, -n FROM r
SELECT a AND true FROM r
SELECT true AND 'yes', NOT 'f', f OR NULL FROM s
SELECT CASE WHEN a THEN 1 END FROM r
SELECT CASE a WHEN 1 THEN 'x' WHEN '2' THEN t ELSE NULL END FROM r
SELECT CASE WHEN true THEN 1 ELSE 'x' END
SELECT CASE WHEN true THEN 1 ELSE 2.5 END, CASE WHEN true THEN d ELSE m END FROM s, u
SELECT CASE WHEN true THEN a ELSE t END FROM r
SELECT coalesce(a, 'x') FROM r
SELECT coalesce(r.a, r.n), coalesce(NULL, 'x'), coalesce(v, r.t), greatest(id, r.n, 1.5), least(d, m) FROM r, u, s
SELECT nullif(a, 1.5), nullif(1, n), nullif('a', t), nullif(a, t) FROM r
SELECT a IS TRUE FROM r
SELECT f IS TRUE, f IS NOT FALSE, f IS UNKNOWN, f IS NOT NULL, f ISNULL, f NOTNULL FROM s
SELECT a IS DISTINCT FROM NULL, a IS NOT DISTINCT FROM n, t IS DISTINCT FROM 'x' FROM r
SELECT a IS DISTINCT FROM t FROM r
SELECT 'abc'::int
SELECT '12'::int, '1.5'::numeric(5,1), 't'::boolean, '2020-01-01'::date, 12::text, 1.5::int, true::int, '5'::float8
SELECT d::int FROM s
SELECT a::date FROM r
SELECT a::boolean, f::int, f::bigint FROM r, s
SELECT d + 1, d - d, d - 1, d + interval '1 month', m - interval '1 day', m - m, m::date, d::timestamp FROM s, u
SELECT d + d FROM s
SELECT d < m, d = '2020-01-01', m > d, d IN ('2020-01-01') FROM s, u
SELECT d = 'x' FROM s
SELECT extract(year FROM d), extract('month' FROM m), date_trunc('month', m), date_part('day', d) FROM s, u
SELECT extract(year FROM t) FROM s
SELECT lower(a) FROM r
SELECT lower(t), length(t), substring(t, 1, 2), substring(t FROM 2 FOR 1), replace(t, 'a', 'b'), left(t, 1) FROM r
SELECT nothing(a) FROM r
SELECT abs(a), abs(n), round(n, 1), round(n), floor(a::float8), sqrt(a), power(a, 2), mod(a, b), sign(n) FROM r
SELECT overlay(t PLACING 'x' FROM 1 FOR 2), position('a' IN t), trim(BOTH 'x' FROM t), trim(LEADING FROM t) FROM r
SELECT ARRAY[1, 2.5], ARRAY['a', NULL], ARRAY[a, b], ARRAY[]::int[], (ARRAY[1, 2])[1], ARRAY['1', '2']::int[] FROM r
SELECT ARRAY[]
SELECT ARRAY[1, 'x']
SELECT ARRAY[1, 2][1]
SELECT (ARRAY[1, 2])['x']
SELECT 1 a b
SELECT 'a' 'b'
SELECT 'a' -- comment
SELECT $$it's$$, E'a\\nb', 'it''s'
SELECT 1_000
SELECT 1a
SELECT .5, 1., 1e3, 1.5E-3, 9223372036854775807, 9223372036854775808, -2147483648, 2147483648
SELECT 1 <> 2, 1 != 2, 1 >= 2
SELECT t COLLATE "C" FROM r
SELECT a COLLATE "C" FROM r
SELECT t COLLATE "nothing" FROM r
SELECT m AT TIME ZONE 'UTC', timestamptz '2020-01-01 00:00+00' AT TIME ZONE 'UTC' FROM u
SELECT interval '1' month, interval '90' day, interval '1 day 2 hours', interval '1-2' year to month
SELECT date 'x'
SELECT nothing 'x'
SELECT int '5', numeric(3,1) '5.5', double precision '1.5', timestamp with time zone '2020-01-01 00:00+00'
SELECT a::nothing FROM r
SELECT a::numeric(3, 5) FROM r
SELECT a::varchar(0) FROM r
SELECT current_date, now()
SELECT j -> 'a', j ->> 'b', j -> 0 FROM rare
SELECT a -> 'x' FROM r
SELECT row(1, 2) = row(1, 2), row(1) = row(2)
SELECT date('2020-01-01'), text(a) FROM r
SELECT cast(a AS) FROM r
SELECT generate_series(1, 3), a FROM r
SELECT unnest(ARRAY[a, b]) AS x, generate_series FROM r, generate_series(1, 2) ORDER BY x
SELECT DISTINCT generate_series(1, a) FROM r LIMIT 3
SELECT generate_series(1, 'x')
SELECT a FROM r WHERE generate_series(1, 2) = 1
SELECT sum(generate_series(1, 2))
SELECT a FROM r WHERE a
SELECT a FROM r WHERE 'x'
SELECT a FROM r WHERE NULL
SELECT a FROM r WHERE t = 5
SELECT DEFAULT
SELECT a is distinct from b is null FROM r
SELECT x'1F'
SELECT ?
SELECT 1 +
SELECT (1
SELECT 1)
SELECT a FROM r WHERE
SELECT a, FROM r
SELECT ALL a FROM r
SELECT DISTINCT ALL a FROM r
SELECT extract(year FROM date '2020-01-01') + 1 AS next, -extract(day FROM date '2020-01-01')
SELECT count(*) + 1.5, sum(a) / count(*), avg(a) * 2 FROM r
SELECT substring(t) FROM r
""".strip().splitlines()

CASES = [*NAMES, *OUTPUT_NAMES, *JOINS, *GROUPS, *ORDERS, *SETS, *WITHS, *SUBQUERIES, *EXPRESSIONS]
