"""Parquet files for tests."""

import pyarrow as pa
import pyarrow.parquet as pq


def parquet(path, **columns):
    table = pa.table(columns).replace_schema_metadata({"made by": "a test"})
    pq.write_table(table, path, row_group_size=7 if len(table) < 1000 else 7000)
    return pq.read_table(path)
