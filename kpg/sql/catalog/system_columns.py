"""The columns of pg_catalog and information_schema, as PostgreSQL 15 has them.

    "pg_catalog.pg_enum": "oid:oid enumtypid:oid enumsortorder:real enumlabel"

A column without a type is text. kpg has no types name and "char": they are text here.
"""

from __future__ import annotations

from typing import Final

from kpg.sql import sql_types
from kpg.sql.catalog.entries import TableColumn
from kpg.sql.sql_types import array_of

TYPES: Final = {
    "boolean": sql_types.BOOLEAN,
    "smallint": sql_types.SMALLINT,
    "integer": sql_types.INTEGER,
    "bigint": sql_types.BIGINT,
    "oid": sql_types.OID,
    "real": sql_types.REAL,
    "double_precision": sql_types.DOUBLE,
    "text": sql_types.TEXT,
    "bytea": sql_types.BYTEA,
    "interval": sql_types.INTERVAL,
    "timestamptz": sql_types.TIMESTAMPTZ,
    "smallint[]": array_of(sql_types.SMALLINT),
    "oid[]": array_of(sql_types.OID),
    "text[]": array_of(sql_types.TEXT),
}

SYSTEM_COLUMNS: Final = {
    "pg_catalog.kpg_definitions": "oid:oid position:integer definition",  # of views, indexes and constraints
    "pg_catalog.pg_class": (
        "oid:oid relname relnamespace:oid reltype:oid reloftype:oid relowner:oid relam:oid relfilenode:oid "
        "reltablespace:oid relpages:integer reltuples:real relallvisible:integer reltoastrelid:oid "
        "relhasindex:boolean relisshared:boolean relpersistence relkind relnatts:smallint relchecks:smallint "
        "relhasrules:boolean relhastriggers:boolean relhassubclass:boolean relrowsecurity:boolean "
        "relforcerowsecurity:boolean relispopulated:boolean relreplident relispartition:boolean "
        "relrewrite:oid relfrozenxid:oid relminmxid:oid relacl:text[] reloptions:text[] relpartbound"
    ),
    "pg_catalog.pg_attribute": (
        "attrelid:oid attname atttypid:oid attstattarget:integer attlen:smallint attnum:smallint "
        "attndims:integer attcacheoff:integer atttypmod:integer attbyval:boolean attalign attstorage "
        "attcompression attnotnull:boolean atthasdef:boolean atthasmissing:boolean attidentity attgenerated "
        "attisdropped:boolean attislocal:boolean attinhcount:integer attcollation:oid attacl:text[] "
        "attoptions:text[] attfdwoptions:text[] attmissingval"
    ),
    "pg_catalog.pg_attrdef": ("oid:oid adrelid:oid adnum:smallint adbin"),
    "pg_catalog.pg_type": (
        "oid:oid typname typnamespace:oid typowner:oid typlen:smallint typbyval:boolean typtype typcategory "
        "typispreferred:boolean typisdefined:boolean typdelim typrelid:oid typsubscript typelem:oid "
        "typarray:oid typinput typoutput typreceive typsend typmodin typmodout typanalyze typalign typstorage "
        "typnotnull:boolean typbasetype:oid typtypmod:integer typndims:integer typcollation:oid typdefaultbin "
        "typdefault typacl:text[]"
    ),
    "pg_catalog.pg_namespace": ("oid:oid nspname nspowner:oid nspacl:text[]"),
    "pg_catalog.pg_index": (
        "indexrelid:oid indrelid:oid indnatts:smallint indnkeyatts:smallint indisunique:boolean "
        "indnullsnotdistinct:boolean indisprimary:boolean indisexclusion:boolean indimmediate:boolean "
        "indisclustered:boolean indisvalid:boolean indcheckxmin:boolean indisready:boolean indislive:boolean "
        "indisreplident:boolean indkey:smallint[] indcollation:oid[] indclass:oid[] indoption "
        "indexprs indpred"
    ),
    "pg_catalog.pg_constraint": (
        "oid:oid conname connamespace:oid contype condeferrable:boolean condeferred:boolean "
        "convalidated:boolean conrelid:oid contypid:oid conindid:oid conparentid:oid confrelid:oid "
        "confupdtype confdeltype confmatchtype conislocal:boolean coninhcount:integer connoinherit:boolean "
        "conkey:smallint[] confkey:smallint[] conpfeqop:oid[] conppeqop:oid[] conffeqop:oid[] "
        "confdelsetcols:smallint[] conexclop:oid[] conbin"
    ),
    "pg_catalog.pg_am": ("oid:oid amname amhandler amtype"),
    "pg_catalog.pg_collation": (
        "oid:oid collname collnamespace:oid collowner:oid collprovider collisdeterministic:boolean "
        "collencoding:integer collcollate collctype colliculocale collversion"
    ),
    "pg_catalog.pg_description": ("objoid:oid classoid:oid objsubid:integer description"),
    "pg_catalog.pg_shdescription": ("objoid:oid classoid:oid description"),
    "pg_catalog.pg_database": (
        "oid:oid datname datdba:oid encoding:integer datlocprovider datistemplate:boolean "
        "datallowconn:boolean datconnlimit:integer datfrozenxid:oid datminmxid:oid dattablespace:oid "
        "datcollate datctype daticulocale datcollversion datacl:text[]"
    ),
    "pg_catalog.pg_roles": (
        "rolname rolsuper:boolean rolinherit:boolean rolcreaterole:boolean rolcreatedb:boolean "
        "rolcanlogin:boolean rolreplication:boolean rolconnlimit:integer rolpassword "
        "rolvaliduntil:timestamptz rolbypassrls:boolean rolconfig:text[] oid:oid"
    ),
    "pg_catalog.pg_user": (
        "usename usesysid:oid usecreatedb:boolean usesuper:boolean userepl:boolean usebypassrls:boolean "
        "passwd valuntil:timestamptz useconfig:text[]"
    ),
    "pg_catalog.pg_auth_members": ("roleid:oid member:oid grantor:oid admin_option:boolean"),
    "pg_catalog.pg_proc": (
        "oid:oid proname pronamespace:oid proowner:oid prolang:oid procost:real prorows:real provariadic:oid "
        "prosupport prokind prosecdef:boolean proleakproof:boolean proisstrict:boolean proretset:boolean "
        "provolatile proparallel pronargs:smallint pronargdefaults:smallint prorettype:oid proargtypes:oid[] "
        "proallargtypes:oid[] proargmodes:text[] proargnames:text[] proargdefaults protrftypes:oid[] prosrc "
        "probin prosqlbody proconfig:text[] proacl:text[]"
    ),
    "pg_catalog.pg_enum": ("oid:oid enumtypid:oid enumsortorder:real enumlabel"),
    "pg_catalog.pg_range": (
        "rngtypid:oid rngsubtype:oid rngmultitypid:oid rngcollation:oid rngsubopc:oid rngcanonical rngsubdiff"
    ),
    "pg_catalog.pg_inherits": ("inhrelid:oid inhparent:oid inhseqno:integer inhdetachpending:boolean"),
    "pg_catalog.pg_policy": (
        "oid:oid polname polrelid:oid polcmd polpermissive:boolean polroles:oid[] polqual polwithcheck"
    ),
    "pg_catalog.pg_statistic_ext": (
        "oid:oid stxrelid:oid stxname stxnamespace:oid stxowner:oid stxstattarget:integer stxkeys:smallint[] "
        "stxkind:text[] stxexprs"
    ),
    "pg_catalog.pg_publication": (
        "oid:oid pubname pubowner:oid puballtables:boolean pubinsert:boolean pubupdate:boolean "
        "pubdelete:boolean pubtruncate:boolean pubviaroot:boolean"
    ),
    "pg_catalog.pg_publication_rel": ("oid:oid prpubid:oid prrelid:oid prqual prattrs:smallint[]"),
    "pg_catalog.pg_publication_namespace": ("oid:oid pnpubid:oid pnnspid:oid"),
    "pg_catalog.pg_trigger": (
        "oid:oid tgrelid:oid tgparentid:oid tgname tgfoid:oid tgtype:smallint tgenabled tgisinternal:boolean "
        "tgconstrrelid:oid tgconstrindid:oid tgconstraint:oid tgdeferrable:boolean tginitdeferred:boolean "
        "tgnargs:smallint tgattr:smallint[] tgargs:bytea tgqual tgoldtable tgnewtable"
    ),
    "pg_catalog.pg_sequence": (
        "seqrelid:oid seqtypid:oid seqstart:bigint seqincrement:bigint seqmax:bigint seqmin:bigint "
        "seqcache:bigint seqcycle:boolean"
    ),
    "pg_catalog.pg_rewrite": ("oid:oid rulename ev_class:oid ev_type ev_enabled is_instead:boolean ev_qual ev_action"),
    "pg_catalog.pg_depend": (
        "classid:oid objid:oid objsubid:integer refclassid:oid refobjid:oid refobjsubid:integer deptype"
    ),
    "pg_catalog.pg_extension": (
        "oid:oid extname extowner:oid extnamespace:oid extrelocatable:boolean extversion extconfig:oid[] "
        "extcondition:text[]"
    ),
    "pg_catalog.pg_foreign_server": (
        "oid:oid srvname srvowner:oid srvfdw:oid srvtype srvversion srvacl:text[] srvoptions:text[]"
    ),
    "pg_catalog.pg_foreign_table": ("ftrelid:oid ftserver:oid ftoptions:text[]"),
    "pg_catalog.pg_foreign_data_wrapper": (
        "oid:oid fdwname fdwowner:oid fdwhandler:oid fdwvalidator:oid fdwacl:text[] fdwoptions:text[]"
    ),
    "pg_catalog.pg_partitioned_table": (
        "partrelid:oid partstrat partnatts:smallint partdefid:oid partattrs:smallint[] partclass:oid[] "
        "partcollation:oid[] partexprs"
    ),
    "pg_catalog.pg_tablespace": ("oid:oid spcname spcowner:oid spcacl:text[] spcoptions:text[]"),
    "pg_catalog.pg_conversion": (
        "oid:oid conname connamespace:oid conowner:oid conforencoding:integer contoencoding:integer conproc "
        "condefault:boolean"
    ),
    "pg_catalog.pg_cast": ("oid:oid castsource:oid casttarget:oid castfunc:oid castcontext castmethod"),
    "pg_catalog.pg_operator": (
        "oid:oid oprname oprnamespace:oid oprowner:oid oprkind oprcanmerge:boolean oprcanhash:boolean "
        "oprleft:oid oprright:oid oprresult:oid oprcom:oid oprnegate:oid oprcode oprrest oprjoin"
    ),
    "pg_catalog.pg_opclass": (
        "oid:oid opcmethod:oid opcname opcnamespace:oid opcowner:oid opcfamily:oid opcintype:oid "
        "opcdefault:boolean opckeytype:oid"
    ),
    "pg_catalog.pg_aggregate": (
        "aggfnoid aggkind aggnumdirectargs:smallint aggtransfn aggfinalfn aggcombinefn aggserialfn "
        "aggdeserialfn aggmtransfn aggminvtransfn aggmfinalfn aggfinalextra:boolean aggmfinalextra:boolean "
        "aggfinalmodify aggmfinalmodify aggsortop:oid aggtranstype:oid aggtransspace:integer "
        "aggmtranstype:oid aggmtransspace:integer agginitval aggminitval"
    ),
    "pg_catalog.pg_language": (
        "oid:oid lanname lanowner:oid lanispl:boolean lanpltrusted:boolean lanplcallfoid:oid laninline:oid "
        "lanvalidator:oid lanacl:text[]"
    ),
    "pg_catalog.pg_settings": (
        "name setting unit category short_desc extra_desc context vartype source min_val max_val "
        "enumvals:text[] boot_val reset_val sourcefile sourceline:integer pending_restart:boolean"
    ),
    "pg_catalog.pg_tables": (
        "schemaname tablename tableowner tablespace hasindexes:boolean hasrules:boolean hastriggers:boolean "
        "rowsecurity:boolean"
    ),
    "pg_catalog.pg_views": ("schemaname viewname viewowner definition"),
    "pg_catalog.pg_matviews": (
        "schemaname matviewname matviewowner tablespace hasindexes:boolean ispopulated:boolean definition"
    ),
    "pg_catalog.pg_indexes": ("schemaname tablename indexname tablespace indexdef"),
    "pg_catalog.pg_sequences": (
        "schemaname sequencename sequenceowner data_type start_value:bigint min_value:bigint max_value:bigint "
        "increment_by:bigint cycle:boolean cache_size:bigint last_value:bigint"
    ),
    "pg_catalog.pg_event_trigger": ("oid:oid evtname evtevent evtowner:oid evtfoid:oid evtenabled evttags:text[]"),
    "pg_catalog.pg_seclabel": ("objoid:oid classoid:oid objsubid:integer provider label"),
    "pg_catalog.pg_default_acl": ("oid:oid defaclrole:oid defaclnamespace:oid defaclobjtype defaclacl:text[]"),
    "pg_catalog.pg_stat_user_tables": (
        "relid:oid schemaname relname seq_scan:bigint seq_tup_read:bigint idx_scan:bigint "
        "idx_tup_fetch:bigint n_tup_ins:bigint n_tup_upd:bigint n_tup_del:bigint n_tup_hot_upd:bigint "
        "n_live_tup:bigint n_dead_tup:bigint n_mod_since_analyze:bigint n_ins_since_vacuum:bigint "
        "last_vacuum:timestamptz last_autovacuum:timestamptz last_analyze:timestamptz "
        "last_autoanalyze:timestamptz vacuum_count:bigint autovacuum_count:bigint analyze_count:bigint "
        "autoanalyze_count:bigint"
    ),
    "pg_catalog.pg_locks": (
        "locktype database:oid relation:oid page:integer tuple:smallint virtualxid transactionid:oid "
        "classid:oid objid:oid objsubid:smallint virtualtransaction pid:integer mode granted:boolean "
        "fastpath:boolean waitstart:timestamptz"
    ),
    "pg_catalog.pg_stat_activity": (
        "datid:oid datname pid:integer leader_pid:integer usesysid:oid usename application_name client_addr "
        "client_hostname client_port:integer backend_start:timestamptz xact_start:timestamptz "
        "query_start:timestamptz state_change:timestamptz wait_event_type wait_event state backend_xid:oid "
        "backend_xmin:oid query_id:bigint query backend_type"
    ),
    "pg_catalog.pg_stat_gssapi": ("pid:integer gss_authenticated:boolean principal encrypted:boolean"),
    "pg_catalog.pg_replication_slots": (
        "slot_name plugin slot_type datoid:oid database temporary:boolean active:boolean active_pid:integer "
        "xmin:oid catalog_xmin:oid restart_lsn confirmed_flush_lsn wal_status safe_wal_size:bigint two_phase:boolean"
    ),
    "pg_catalog.pg_db_role_setting": ("setdatabase:oid setrole:oid setconfig:text[]"),
    "pg_catalog.pg_user_mapping": ("oid:oid umuser:oid umserver:oid umoptions:text[]"),
    "information_schema.schemata": (
        "catalog_name schema_name schema_owner default_character_set_catalog default_character_set_schema "
        "default_character_set_name sql_path"
    ),
    "information_schema.tables": (
        "table_catalog table_schema table_name table_type self_referencing_column_name reference_generation "
        "user_defined_type_catalog user_defined_type_schema user_defined_type_name is_insertable_into "
        "is_typed commit_action"
    ),
    "information_schema.columns": (
        "table_catalog table_schema table_name column_name ordinal_position:integer column_default "
        "is_nullable data_type character_maximum_length:integer character_octet_length:integer "
        "numeric_precision:integer numeric_precision_radix:integer numeric_scale:integer "
        "datetime_precision:integer interval_type interval_precision:integer character_set_catalog "
        "character_set_schema character_set_name collation_catalog collation_schema collation_name "
        "domain_catalog domain_schema domain_name udt_catalog udt_schema udt_name scope_catalog scope_schema "
        "scope_name maximum_cardinality:integer dtd_identifier is_self_referencing is_identity "
        "identity_generation identity_start identity_increment identity_maximum identity_minimum "
        "identity_cycle is_generated generation_expression is_updatable"
    ),
    "information_schema.views": (
        "table_catalog table_schema table_name view_definition check_option is_updatable is_insertable_into "
        "is_trigger_updatable is_trigger_deletable is_trigger_insertable_into"
    ),
    "information_schema.table_constraints": (
        "constraint_catalog constraint_schema constraint_name table_catalog table_schema table_name "
        "constraint_type is_deferrable initially_deferred enforced nulls_distinct"
    ),
    "information_schema.key_column_usage": (
        "constraint_catalog constraint_schema constraint_name table_catalog table_schema table_name "
        "column_name ordinal_position:integer position_in_unique_constraint:integer"
    ),
    "information_schema.constraint_column_usage": (
        "table_catalog table_schema table_name column_name constraint_catalog constraint_schema constraint_name"
    ),
    "information_schema.check_constraints": ("constraint_catalog constraint_schema constraint_name check_clause"),
    "information_schema.sequences": (
        "sequence_catalog sequence_schema sequence_name data_type numeric_precision:integer "
        "numeric_precision_radix:integer numeric_scale:integer start_value minimum_value maximum_value "
        "increment cycle_option"
    ),
    "information_schema.referential_constraints": (
        "constraint_catalog constraint_schema constraint_name unique_constraint_catalog "
        "unique_constraint_schema unique_constraint_name match_option update_rule delete_rule"
    ),
    "information_schema.routines": (
        "specific_catalog specific_schema specific_name routine_catalog routine_schema routine_name "
        "routine_type module_catalog module_schema module_name udt_catalog udt_schema udt_name data_type "
        "character_maximum_length:integer character_octet_length:integer character_set_catalog "
        "character_set_schema character_set_name collation_catalog collation_schema collation_name "
        "numeric_precision:integer numeric_precision_radix:integer numeric_scale:integer "
        "datetime_precision:integer interval_type interval_precision:integer type_udt_catalog type_udt_schema "
        "type_udt_name scope_catalog scope_schema scope_name maximum_cardinality:integer dtd_identifier "
        "routine_body routine_definition external_name external_language parameter_style is_deterministic "
        "sql_data_access is_null_call sql_path schema_level_routine max_dynamic_result_sets:integer "
        "is_user_defined_cast is_implicitly_invocable security_type to_sql_specific_catalog "
        "to_sql_specific_schema to_sql_specific_name as_locator created:timestamptz last_altered:timestamptz "
        "new_savepoint_level is_udt_dependent result_cast_from_data_type result_cast_as_locator "
        "result_cast_char_max_length:integer result_cast_char_octet_length:integer "
        "result_cast_char_set_catalog result_cast_char_set_schema result_cast_char_set_name "
        "result_cast_collation_catalog result_cast_collation_schema result_cast_collation_name "
        "result_cast_numeric_precision:integer result_cast_numeric_precision_radix:integer "
        "result_cast_numeric_scale:integer result_cast_datetime_precision:integer result_cast_interval_type "
        "result_cast_interval_precision:integer result_cast_type_udt_catalog result_cast_type_udt_schema "
        "result_cast_type_udt_name result_cast_scope_catalog result_cast_scope_schema result_cast_scope_name "
        "result_cast_maximum_cardinality:integer result_cast_dtd_identifier"
    ),
    "information_schema.parameters": (
        "specific_catalog specific_schema specific_name ordinal_position:integer parameter_mode is_result "
        "as_locator parameter_name data_type character_maximum_length:integer character_octet_length:integer "
        "character_set_catalog character_set_schema character_set_name collation_catalog collation_schema "
        "collation_name numeric_precision:integer numeric_precision_radix:integer numeric_scale:integer "
        "datetime_precision:integer interval_type interval_precision:integer udt_catalog udt_schema udt_name "
        "scope_catalog scope_schema scope_name maximum_cardinality:integer dtd_identifier parameter_default"
    ),
    "information_schema.triggers": (
        "trigger_catalog trigger_schema trigger_name event_manipulation event_object_catalog "
        "event_object_schema event_object_table action_order:integer action_condition action_statement "
        "action_orientation action_timing action_reference_old_table action_reference_new_table "
        "action_reference_old_row action_reference_new_row created:timestamptz"
    ),
    "information_schema.domains": (
        "domain_catalog domain_schema domain_name data_type character_maximum_length:integer "
        "character_octet_length:integer character_set_catalog character_set_schema character_set_name "
        "collation_catalog collation_schema collation_name numeric_precision:integer "
        "numeric_precision_radix:integer numeric_scale:integer datetime_precision:integer interval_type "
        "interval_precision:integer domain_default udt_catalog udt_schema udt_name scope_catalog scope_schema "
        "scope_name maximum_cardinality:integer dtd_identifier"
    ),
    "information_schema.table_privileges": (
        "grantor grantee table_catalog table_schema table_name privilege_type is_grantable with_hierarchy"
    ),
    "information_schema.column_privileges": (
        "grantor grantee table_catalog table_schema table_name column_name privilege_type is_grantable"
    ),
}


def is_system(name: str) -> bool:
    """Return whether a name is one of pg_catalog or information_schema."""
    return name.startswith(("pg_catalog.", "information_schema."))


def columns_of_system(name: str) -> tuple[TableColumn, ...] | None:
    """Return the columns of a relation of pg_catalog or information_schema; None if kpg has none of that name."""
    described = SYSTEM_COLUMNS.get(name)
    if described is None:
        return None
    pairs = [column.partition(":") for column in described.split()]
    return tuple(TableColumn(column, TYPES[kind or "text"]) for column, _, kind in pairs)
