"""user memo

Revision ID: 21f55abc2b90
Revises:
Depends on: 072361e8936f, the first revision of the host's user data, so that the foreign key has its table.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "21f55abc2b90"
down_revision = None
branch_labels = ("amrita_plugin_memory",)
depends_on = "072361e8936f"

_TABLE = "amrita_plugin_memory_user_memo"


def upgrade(name: str = "") -> None:
    if name:
        return
    op.create_table(
        _TABLE,
        sa.Column("user_id", sa.String(length=64), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("updated_at", sa.DateTime(), nullable=False),
        sa.ForeignKeyConstraint(
            ["user_id"],
            ["amrita_user_metadata.user_id"],
            name=op.f(f"fk_{_TABLE}_user_id_amrita_user_metadata"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("user_id", name=op.f(f"pk_{_TABLE}")),
        info={"bind_key": "amrita_plugin_memory"},
    )


def downgrade(name: str = "") -> None:
    if name:
        return
    op.drop_table(_TABLE)
