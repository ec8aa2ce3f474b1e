"""The two tables of the plugin, as the published plugin made them: names, columns and keys unchanged."""

from datetime import datetime

from nonebot_plugin_orm import Model
from sqlalchemy import DateTime, ForeignKey, Integer, String, Text
from sqlalchemy.orm import Mapped, mapped_column


class UserMemo(Model):
    """L1: one row a private chat or group. ``updated_at`` is naive; rows of ours hold UTC."""

    __tablename__ = "amrita_plugin_memory_user_memo"

    user_id: Mapped[str] = mapped_column(
        String(64), ForeignKey("amrita_user_metadata.user_id", ondelete="CASCADE"), primary_key=True
    )
    content: Mapped[str] = mapped_column(Text, nullable=False)
    version: Mapped[int] = mapped_column(Integer, nullable=False)
    updated_at: Mapped[datetime] = mapped_column(DateTime, nullable=False)


class SubconsciousState(Model):
    """L3: one row a target, its payload as JSON."""

    __tablename__ = "amrita_plugin_memory_subconscious_state"

    uid: Mapped[str] = mapped_column(String(64), primary_key=True)
    payload: Mapped[str] = mapped_column(Text, nullable=False)
    updated_at: Mapped[datetime] = mapped_column(DateTime, nullable=False)
