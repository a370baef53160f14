"""The page on Spark runs, block by block."""

import re
from pathlib import Path

PAGE = Path(__file__).parent.parent.parent / "docs" / "spark.md"
FENCE = re.compile(r"^```python no-run\n(?P<code>(?s:.*?))^```[ \t]*$", re.MULTILINE)
PATHS = re.compile(r'"(arriving(?:/1.json)?|checkpoint|archived?)(?=")')


def test_the_blocks_of_the_page_on_spark_run(spark, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = PAGE.read_text()
    namespace = {"spark": spark}
    for block in FENCE.finditer(text):
        line = text[: block.start("code")].count("\n")
        code = PATHS.sub(rf'"{tmp_path}/\1', block["code"])  # Spark does not follow a change of directory
        exec(compile("\n" * line + code, str(PAGE), "exec"), namespace)
