"""The types of columns, one file each; importing this package registers the types of kpg.

To add a type, write one file beside these and add its line to the imports below (docs/types.md, "Adding a type"). The
order of the imports is the order in which messages list the types.
"""

# isort: off
from kpg.columns.column_types import int64_type as int64_type
from kpg.columns.column_types import uint64_type as uint64_type
from kpg.columns.column_types import float64_type as float64_type
from kpg.columns.column_types import bool_type as bool_type
from kpg.columns.column_types import string_type as string_type
from kpg.columns.column_types import binary_type as binary_type
from kpg.columns.column_types import date_type as date_type
from kpg.columns.column_types import timestamp_type as timestamp_type
from kpg.columns.column_types import decimal_type as decimal_type
from kpg.columns.column_types import record_type as record_type
from kpg.columns.column_types import uuid_type as uuid_type
from kpg.columns.column_types import time_type as time_type
from kpg.columns.column_types import timestamp_ntz_type as timestamp_ntz_type
from kpg.columns.column_types import interval_type as interval_type
from kpg.columns.column_types import jsonb_type as jsonb_type
from kpg.columns.column_types import array_type as array_type
