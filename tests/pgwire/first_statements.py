"""The statements that tools send when they connect to PostgreSQL and first show what a database holds.

They are inputs of tests, as the tools send them. `$TABLE` stands for the OID of a table, and `$SCHEMA` for that of the
schema `public`.
"""

METABASE = [
    "SET extra_float_digits = 3",
    "SET application_name = 'Metabase'",
    "SHOW TRANSACTION ISOLATION LEVEL",
    "BEGIN READ ONLY",
    "SELECT 1",
    "COMMIT",
    """SELECT nspname, typname FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace
       WHERE t.oid IN (SELECT DISTINCT enumtypid FROM pg_enum e)""",
    "SELECT CAST(nspname AS text) FROM pg_namespace WHERE nspname !~ '^pg_temp' ORDER BY nspname",
    """SELECT n.nspname AS schema, c.relname AS name,
              CASE c.relkind WHEN 'r' THEN 'TABLE' WHEN 'p' THEN 'PARTITIONED TABLE' WHEN 'v' THEN 'VIEW'
                             WHEN 'f' THEN 'FOREIGN TABLE' WHEN 'm' THEN 'MATERIALIZED VIEW' ELSE NULL END AS type,
              d.description AS description, NULLIF(stat.n_live_tup, 0) AS estimated_row_count
       FROM pg_catalog.pg_class AS c
       INNER JOIN pg_catalog.pg_namespace AS n ON c.relnamespace = n.oid
       LEFT JOIN pg_catalog.pg_description AS d ON c.oid = d.objoid AND d.objsubid = 0
            AND d.classoid = 'pg_class'::regclass
       LEFT JOIN pg_stat_user_tables AS stat ON n.nspname = stat.schemaname AND c.relname = stat.relname
       WHERE c.relnamespace = n.oid AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
             AND c.relkind IN ('r', 'p', 'v', 'f', 'm') AND n.nspname IN ('public')
       ORDER BY type ASC, schema ASC, name ASC""",
    """SELECT c.column_name AS name, c.udt_name AS "database-type", c.ordinal_position - 1 AS "database-position",
              c.table_schema AS "table-schema", c.table_name AS "table-name", pk.column_name IS NOT NULL AS "pk?",
              COL_DESCRIPTION(CAST(CAST(FORMAT('%I.%I', CAST(c.table_schema AS TEXT), CAST(c.table_name AS TEXT))
                  AS REGCLASS) AS OID), c.ordinal_position) AS "field-comment",
              ((c.column_default IS NULL) OR (LOWER(c.column_default) = 'null'))
                  AND (c.is_nullable = 'NO') AND NOT ((c.column_default IS NOT NULL)
                  AND (c.column_default LIKE '%nextval(%')) AND (c.is_identity = 'NO') AS "database-required",
              (c.column_default IS NOT NULL AND c.column_default LIKE '%nextval(%')
                  OR c.is_identity <> 'NO' AS "database-is-auto-increment"
       FROM information_schema.columns AS c
       LEFT JOIN (SELECT tc.table_schema, tc.table_name, kc.column_name
                  FROM information_schema.table_constraints AS tc
                  INNER JOIN information_schema.key_column_usage AS kc
                      ON tc.constraint_name = kc.constraint_name AND tc.table_schema = kc.table_schema
                      AND tc.table_name = kc.table_name
                  WHERE tc.constraint_type = 'PRIMARY KEY') AS pk
           ON c.table_schema = pk.table_schema AND c.table_name = pk.table_name AND c.column_name = pk.column_name
       WHERE c.table_schema !~ '^information_schema|catalog_history|pg_' AND c.table_schema IN ('public')
       ORDER BY "table-schema", "table-name", "database-position" """,
]

SUPERSET = [
    "SELECT pg_catalog.version()",
    "SELECT current_schema()",
    "SHOW standard_conforming_strings",
    "SELECT typname AS name, oid, typarray AS array_oid, oid::regtype::text AS regtype, typdelim AS delimiter "
    "FROM pg_type t WHERE t.oid = to_regtype('hstore') ORDER BY t.oid",
    "SELECT t.oid, typarray FROM pg_type t JOIN pg_namespace ns ON typnamespace = ns.oid WHERE typname = 'hstore'",
    "SELECT nspname FROM pg_namespace WHERE nspname NOT LIKE 'pg_%' ORDER BY nspname",
    "SELECT datname FROM pg_database WHERE datistemplate = false",
]

DBEAVER = [
    "SET application_name = 'DBeaver 25 - Main <kpg>'",
    "SELECT current_database()",
    "SELECT db.oid,db.* FROM pg_catalog.pg_database db WHERE 1 = 1 AND datallowconn AND NOT datistemplate "
    "OR db.datname = 'kpg' ORDER BY db.datname",
    "SELECT version()",
    "SELECT reset_val FROM pg_settings WHERE name = 'search_path'",
    "SELECT current_schema(),session_user",
    "SHOW search_path",
    "SELECT n.oid,n.*,d.description FROM pg_catalog.pg_namespace n LEFT OUTER JOIN pg_catalog.pg_description d "
    "ON d.objoid=n.oid AND d.objsubid=0 AND d.classoid='pg_namespace'::regclass ORDER BY nspname",
    "SELECT 1 FROM pg_catalog.pg_attribute s JOIN pg_catalog.pg_class p ON s.attrelid = p.oid JOIN "
    "pg_catalog.pg_namespace n ON p.relnamespace = n.oid WHERE p.relname = 'pg_type' AND n.nspname = 'pg_catalog' "
    "AND s.attname = 'typcategory'",
    "SELECT t.oid,t.*,c.relkind,format_type(nullif(t.typbasetype, 0), t.typtypmod) as base_type_name, d.description "
    "FROM pg_catalog.pg_type t LEFT OUTER JOIN pg_catalog.pg_type et ON et.oid=t.typelem "
    "LEFT OUTER JOIN pg_catalog.pg_class c ON c.oid=t.typrelid "
    "LEFT OUTER JOIN pg_catalog.pg_description d ON t.oid=d.objoid "
    "WHERE t.typname IS NOT NULL AND (c.relkind IS NULL OR c.relkind = 'c') "
    "AND (et.typcategory IS NULL OR et.typcategory <> 'C')",
    "SELECT c.oid,c.*,d.description,pg_catalog.pg_get_expr(c.relpartbound, c.oid) as partition_expr, "
    "pg_catalog.pg_get_partkeydef(c.oid) as partition_key FROM pg_catalog.pg_class c "
    "LEFT OUTER JOIN pg_catalog.pg_description d "
    "ON d.objoid=c.oid AND d.objsubid=0 AND d.classoid='pg_class'::regclass "
    "WHERE c.relnamespace=$SCHEMA AND c.relkind not in ('i','I','c')",
    "SELECT c.relname,a.*,pg_catalog.pg_get_expr(ad.adbin, ad.adrelid, true) as def_value,dsc.description,dep.objid "
    "FROM pg_catalog.pg_attribute a INNER JOIN pg_catalog.pg_class c ON (a.attrelid=c.oid) "
    "LEFT OUTER JOIN pg_catalog.pg_attrdef ad ON (a.attrelid=ad.adrelid AND a.attnum = ad.adnum) "
    "LEFT OUTER JOIN pg_catalog.pg_description dsc ON (c.oid=dsc.objoid AND a.attnum = dsc.objsubid) "
    "LEFT OUTER JOIN pg_depend dep on dep.refobjid = a.attrelid AND dep.deptype = 'i' and dep.refobjsubid = a.attnum "
    "and dep.classid = dep.refclassid "
    "WHERE NOT a.attisdropped AND c.relkind not in ('i','I','c') AND c.oid=$TABLE ORDER BY a.attnum",
    "SELECT a.oid,a.* FROM pg_catalog.pg_roles a ORDER BY a.rolname",
    "SELECT am.oid,am.* FROM pg_catalog.pg_am am",
    "SELECT c.oid,c.*,d.description FROM pg_catalog.pg_conversion c LEFT OUTER JOIN pg_catalog.pg_description d "
    "ON d.objoid=c.oid",
    "SELECT t.oid,t.*,pg_tablespace_location(t.oid) loc FROM pg_catalog.pg_tablespace t ORDER BY t.oid",
    "SELECT l.oid,l.* FROM pg_catalog.pg_language l ORDER BY l.oid",
]

PGADMIN = [
    "SET DateStyle=ISO; SET client_min_messages=notice; SELECT set_config('bytea_output','hex',false) "
    "FROM pg_show_all_settings() WHERE name = 'bytea_output'; SET client_encoding='utf-8';",
    "SELECT version()",
    """SELECT db.oid as did, db.datname, db.datallowconn, pg_encoding_to_char(db.encoding) AS serverencoding,
              has_database_privilege(db.oid, 'CREATE') as cancreate, datistemplate
       FROM pg_catalog.pg_database db WHERE db.datname = current_database()""",
    "SELECT gss_authenticated, encrypted FROM pg_catalog.pg_stat_gssapi WHERE pid = pg_backend_pid()",
    """SELECT roles.oid as id, roles.rolname as name, roles.rolsuper as is_superuser,
              CASE WHEN roles.rolsuper THEN true ELSE roles.rolcreaterole END as can_create_role,
              CASE WHEN roles.rolsuper THEN true ELSE roles.rolcreatedb END as can_create_db,
              CASE WHEN 'pg_signal_backend'=ANY(ARRAY(WITH RECURSIVE cte AS (
                  SELECT pg_roles.oid,pg_roles.rolname FROM pg_catalog.pg_roles WHERE pg_roles.oid = roles.oid
                  UNION ALL
                  SELECT m.roleid,pgr.rolname FROM cte cte_1
                  JOIN pg_catalog.pg_auth_members m ON m.member = cte_1.oid
                  JOIN pg_catalog.pg_roles pgr ON pgr.oid = m.roleid)
                  SELECT rolname FROM cte)) THEN True ELSE False END as can_signal_backend
       FROM pg_catalog.pg_roles as roles WHERE rolname = current_user""",
    """SELECT CASE WHEN usesuper THEN pg_catalog.pg_is_in_recovery() ELSE FALSE END as inrecovery,
              CASE WHEN usesuper AND pg_catalog.pg_is_in_recovery() THEN pg_is_wal_replay_paused()
                   ELSE FALSE END as isreplaypaused
       FROM pg_catalog.pg_user WHERE usename=current_user""",
    """SELECT CASE WHEN (SELECT count(extname) FROM pg_catalog.pg_extension WHERE extname='bdr') > 0 THEN 'pgd'
              WHEN (SELECT COUNT(*) FROM pg_catalog.pg_replication_slots) > 0 THEN 'log' ELSE NULL END as type""",
    """SELECT db.oid as did, db.datname as name, ta.spcname as spcname, db.datallowconn,
              db.datistemplate AS is_template, pg_catalog.has_database_privilege(db.oid, 'CREATE') as cancreate,
              datdba as owner, descr.description
       FROM pg_catalog.pg_database db
       LEFT OUTER JOIN pg_catalog.pg_tablespace ta ON db.dattablespace = ta.oid
       LEFT OUTER JOIN pg_catalog.pg_shdescription descr ON
           (db.oid=descr.objoid AND descr.classoid='pg_database'::regclass)
       ORDER BY datname""",
]

TOOLS = {"metabase": METABASE, "superset": SUPERSET, "dbeaver": DBEAVER, "pgadmin": PGADMIN}
