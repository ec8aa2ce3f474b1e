"""subconscious state

Revision ID: 6004d221a7de
Revises: 21f55abc2b90
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "6004d221a7de"
down_revision = "21f55abc2b90"
branch_labels = None
depends_on = None

_TABLE = "amrita_plugin_memory_subconscious_state"


def upgrade(name: str = "") -> None:
    if name:
        return
    op.create_table(
        _TABLE,
        sa.Column("uid", sa.String(length=64), nullable=False),
        sa.Column("payload", sa.Text(), nullable=False),
        sa.Column("updated_at", sa.DateTime(), nullable=False),
        sa.PrimaryKeyConstraint("uid", name=op.f(f"pk_{_TABLE}")),
        info={"bind_key": "amrita_plugin_memory"},
    )


def downgrade(name: str = "") -> None:
    if name:
        return
    op.drop_table(_TABLE)
