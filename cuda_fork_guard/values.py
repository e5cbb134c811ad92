"""Frozen values without dataclasses, whose import alone would cost more than the whole guard."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def plain(value: Any) -> Any:
    """The value as JSON knows it."""
    if isinstance(value, Value):
        return value.as_dict()
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    return value


class Value:
    """Compared, hashed, shown and pickled by its fields, which are the names in ``__slots__``."""

    __slots__: tuple[str, ...] = ()

    def __init__(self, **fields: Any) -> None:
        missing = [name for name in self.__slots__ if name not in fields]
        if missing or len(fields) != len(self.__slots__):
            raise TypeError(f"{type(self).__name__} takes the fields {', '.join(self.__slots__)}")
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen: {name} can't be set")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen: {name} can't be deleted")

    def _fields(self) -> tuple[tuple[str, Any], ...]:
        return tuple((name, getattr(self, name)) for name in self.__slots__)

    def __eq__(self, other: object) -> bool:
        return self._fields() == other._fields() if type(other) is type(self) and isinstance(other, Value) else False

    def __hash__(self) -> int:
        return hash((type(self), self._fields()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._fields())})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), dict(self._fields()))

    def as_dict(self) -> dict[str, Any]:
        """The fields as plain JSON values."""
        return {name: plain(value) for name, value in self._fields()}


def _rebuild(kind: type[Value], fields: dict[str, Any]) -> Value:
    return kind(**fields)
