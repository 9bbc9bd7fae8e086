"""The whole schema, as SQL files in `baseline/`.

It is revision 0012 because it replaces the revisions 0001 to 0011, from before the first release. A database at 0011 is
brought to this schema by `from_0011.py`.
"""

from pathlib import Path

from alembic import op

revision = "0012"
down_revision = None

BASELINE = Path(__file__).parent.parent / "baseline"


def upgrade() -> None:
    connection = op.get_bind().execution_options(no_parameters=True)
    for path in sorted(BASELINE.glob("*.sql")):
        connection.exec_driver_sql(path.read_text())
