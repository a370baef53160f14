"""Settings of PostgreSQL that have one value in kpg, which SHOW and current_setting() return."""

from __future__ import annotations

from typing import Final

FIXED_SETTINGS: Final = {
    "server_version": "15.0 (kpg)",
    "server_version_num": "150000",
    "server_encoding": "UTF8",
    "client_encoding": "UTF8",
    "datestyle": "ISO, YMD",
    "intervalstyle": "postgres",
    "timezone": "UTC",
    "lc_collate": "C",
    "lc_ctype": "C",
    "lc_messages": "C",
    "lc_monetary": "C",
    "standard_conforming_strings": "on",
    "escape_string_warning": "on",
    "transaction_isolation": "repeatable read",
    "default_transaction_isolation": "repeatable read",
    "transaction_read_only": "off",
    "default_transaction_read_only": "off",
    "transaction_deferrable": "off",
    "default_transaction_deferrable": "off",
    "search_path": "public",
    "integer_datetimes": "on",
    "bytea_output": "hex",
    "max_identifier_length": "63",
    "max_index_keys": "32",
    "in_hot_standby": "off",
    "is_superuser": "off",
    "session_authorization": "kpg",
    "lock_timeout": "0",
    "idle_in_transaction_session_timeout": "0",
    "row_security": "on",
    "jit": "off",
    "default_table_access_method": "heap",
    "default_tablespace": "",
    "synchronize_seqscans": "off",
}
